"""What TraceVLM learns from RILN: nothing that is said or pointed at gets lost on the way."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")

from saywhere.build.riln.assembly import question_example
from saywhere.build.riln.drafts import Ledger
from saywhere.build.riln.example import Thought, read_riln
from saywhere.build.riln.instructions import FILES, instruction_of, write_instructions
from saywhere.build.riln.templates import TemplateGenerator
from saywhere.core.trajectory import from_text
from saywhere.models.tracevlm.examples import Instruction, InstructionFile
from saywhere.models.tracevlm.trajectory import Trajectory
from tests.build.riln.test_checks import DOG, asked, spoken
from tests.build.riln.test_command import narratives, run
from tests.build.riln.told import grounded

__all__ = ["narratives"]


def everything(folder: Path) -> list[Instruction]:
    return [one for name in FILES for one in InstructionFile(folder / name)]


def test_words_and_trajectories_stay_in_their_order() -> None:
    one = instruction_of(asked(question=f"What is at {DOG} here?"), "139.jpg")
    assert (one.task, one.images) == ("interpret", ("139.jpg",))
    before, drawn, after = one.turns[0].parts
    assert (before, after) == ("What is at ", " here?")
    assert isinstance(drawn, Trajectory)
    [found] = from_text(DOG)
    assert drawn.trace.xy.tolist() == found.points_xy.tolist()
    assert one.turns[1].parts == ("A dog.",)


@pytest.mark.parametrize(
    ("kind", "task"), [("interpretation", "interpret"), ("grounding", "ground"), ("reasoning", "reason")]
)
def test_the_kind_of_a_question_is_its_task(kind: str, task: str) -> None:
    assert instruction_of(asked(kind), "139.jpg").task == task


def test_a_dialogue_keeps_all_its_turns() -> None:
    example = spoken()
    one = instruction_of(example, "139.jpg")
    assert one.task == "dialogue"
    assert [turn.role for turn in one.turns] == [turn.role for turn in example.turns]


def test_an_answer_begins_with_the_claims_that_it_rests_on() -> None:
    leaf = Thought(f"The pointer is at {DOG}.", "object")
    tree = Thought("It is low.", "object", (leaf, Thought("It lies.", "local", (leaf,))))
    example = msgspec.structs.replace(asked("reasoning", answer="So it is low!"), reasoning=tree)
    before, drawn, *after = instruction_of(example, "139.jpg").turns[1].parts
    assert before == "The pointer is at "
    assert isinstance(drawn, Trajectory)
    assert after == [". It lies. So it is low!"]


def test_claims_that_an_answer_makes_itself_are_not_repeated() -> None:
    drafts = TemplateGenerator().questions(grounded(), 1, np.random.default_rng(0), Ledger())
    for number, draft in enumerate(drafts):
        example = question_example(grounded(), draft, number, "t")
        said = " ".join(part for part in instruction_of(example, "7").turns[1].parts if isinstance(part, str))
        if (draft.level, draft.kind) == ("global", "reasoning"):
            assert said.startswith("The pointer is on")
        else:
            assert len(said.split()) <= len(draft.answer.split())


def test_an_image_s_examples_go_into_one_file_and_names_of_photos_are_used(tmp_path: Path) -> None:
    photos = Path("photos")
    made = write_instructions([asked(), spoken()], tmp_path, photos, lambda image: photos / f"{image}.jpg")
    assert sorted((made.train, made.validation)) == [0, 2]
    assert made.absent == ()
    assert {one.images[0] for one in everything(tmp_path)} == {f"{asked().image}.jpg"}


def test_frames_of_videos_keep_their_folder_and_absent_photos_are_told(tmp_path: Path) -> None:
    names = ("5d24e4ea/img_3", "77aa/img_3", "77aa/gone")
    photos = tmp_path / "frames"
    files = {name: photos / f"{name}.webp" for name in names[:2]}
    examples = [msgspec.structs.replace(asked(), image=name) for name in names]
    made = write_instructions(examples, tmp_path, photos, files.get)
    assert sorted(one.images[0] for one in everything(tmp_path)) == [
        *("5d24e4ea/img_3.webp", "77aa/gone", "77aa/img_3.webp"),
    ]
    assert made.absent == ("77aa/gone",)


def test_the_command_writes_them_beside_the_data_set(narratives: Path, tmp_path: Path) -> None:
    out, taught = tmp_path / "riln", tmp_path / "taught"
    said = run(narratives, "--out", out, "--review-examples", 0, "--instructions", taught)
    assert len(everything(taught)) == sum(1 for _ in read_riln(out)) > 0
    assert "without --photos images are named without an ending" in " ".join(said.split())


def test_the_command_names_photos_and_says_which_are_absent(narratives: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "photos" / "1.png")
    taught = tmp_path / "taught"
    where = ("--photos", tmp_path / "photos", "--instructions", taught)
    said = run(narratives, "--out", tmp_path / "riln", "--review-examples", 0, *where)
    assert {one.images[0] for one in everything(taught)} == {"1.png", "2"}
    assert "lacks the photos of 1 images, first '2'" in " ".join(said.split())
