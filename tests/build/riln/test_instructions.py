"""What TraceVLM learns from RILN: nothing that is said or pointed at gets lost on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from saywhere.build.riln.example import read_riln
from saywhere.build.riln.instructions import FILES, instruction_of, write_instructions
from saywhere.core.trajectory import from_text
from saywhere.models.tracevlm.examples import InstructionFile
from saywhere.models.tracevlm.trajectory import Trajectory
from tests.build.riln.test_checks import DOG, asked, spoken
from tests.build.riln.test_command import narratives, run

__all__ = ["narratives"]


def test_words_and_trajectories_stay_in_their_order() -> None:
    one = instruction_of(asked(question=f"What is at {DOG} here?"), "139.jpg")
    assert (one.task, one.images) == ("reason", ("139.jpg",))
    before, drawn, after = one.turns[0].parts
    assert (before, after) == ("What is at ", " here?")
    assert isinstance(drawn, Trajectory)
    [found] = from_text(DOG)
    assert drawn.trace.xy.tolist() == found.points_xy.tolist()
    assert one.turns[1].parts == ("A dog.",)


def test_a_dialogue_keeps_all_its_turns() -> None:
    example = spoken()
    one = instruction_of(example, "139.jpg")
    assert one.task == "dialogue"
    assert [turn.role for turn in one.turns] == [turn.role for turn in example.turns]


def test_an_image_s_examples_go_into_one_file_and_names_of_photos_are_used(tmp_path: Path) -> None:
    counts = write_instructions([asked(), spoken()], tmp_path, lambda image: Path("photos") / f"{image}.jpg")
    assert sorted(counts) == [0, 2]
    [kept] = [name for name, count in zip(FILES, counts, strict=True) if count]
    assert {one.images[0] for one in InstructionFile(tmp_path / kept)} == {f"{asked().image}.jpg"}


def test_the_command_writes_them_beside_the_data_set(narratives: Path, tmp_path: Path) -> None:
    out, taught = tmp_path / "riln", tmp_path / "taught"
    run(narratives, "--out", out, "--review-examples", 0, "--instructions", taught)
    made = sum(1 for _ in read_riln(out))
    assert sum(len((taught / name).read_text().splitlines()) for name in FILES) == made > 0
