"""Instructions: one form for every task, written and read back, and made of narratives."""

from __future__ import annotations

from pathlib import Path

import pytest

from saywhere.core import InvalidFile, InvalidValue, Narrative, Trace, UnknownName, Utterance
from saywhere.models.tracevlm.examples import (
    TASKS,
    Instruction,
    InstructionFile,
    SegmentTarget,
    answered,
    asked,
    of_narrative,
    save_instructions,
)
from saywhere.models.tracevlm.trajectory import Trajectory
from tests.models.tracevlm import small

GOOD = (
    '{"task": "describe", "images": ["a.png"], "turns": [{"role": "user", "parts": [{"text": "?"}]}, '
    '{"role": "assistant", "parts": [PART]}]}'
)


def test_there_is_an_instruction_for_every_task() -> None:
    assert {one.task for one in small.instructions()} == set(TASKS)


def test_instructions_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    written = small.instructions()
    assert save_instructions(tmp_path / "all.jsonl", written) == len(written)
    read = InstructionFile(tmp_path / "all.jsonl")
    assert len(read) == len(written)
    for one, other in zip(written, read, strict=True):
        assert (one.task, one.images, len(one.turns)) == (other.task, other.images, len(other.turns))
        for turn, same in zip(one.turns, other.turns, strict=True):
            plain = [part for part in turn.parts if not isinstance(part, SegmentTarget)]
            assert plain == [part for part in same.parts if not isinstance(part, SegmentTarget)]
            masks = [part.mask for part in turn.parts if isinstance(part, SegmentTarget)]
            found = [part.mask for part in same.parts if isinstance(part, SegmentTarget)]
            assert all((a.values == b.values).all() for a, b in zip(masks, found, strict=True) if a and b)
            assert len(masks) == len(found)


def test_of_a_file_only_so_many_are_taken(tmp_path: Path) -> None:
    save_instructions(tmp_path / "all.jsonl", small.instructions())
    assert len(InstructionFile(tmp_path / "all.jsonl", 3)) == 3


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("{}", "one of text, trajectory, box and mask"),
        ('{"text": "a", "box": [0, 0, 1, 1]}', "one of text, trajectory, box and mask"),
        ('{"trajectory": [[0.1, 0.1, 1], [0.1, 0.1, 0]]}', "go back in time"),
        ('{"trajectory": [[2, 2, 0]]}', "none of its 1 points"),
        ('{"trajectory": [[0.5, 0.5, 0]], "frames": [1]}', "names image 1, but has 1"),
        ('{"mask": {"size": [2, 2], "counts": [1, 2]}}', "runs of 3 pixels in all, not 2 × 2"),
        ('{"box": [0.5, 0, 0.1, 1]}', "has no area"),
        ('{"words": "a"}', "unknown field"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, part: str, reason: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(GOOD.replace("PART", '{"text": "a"}') + "\n\n" + GOOD.replace("PART", part) + "\n")
    read = InstructionFile(path)
    assert read[0].task == "describe"
    with pytest.raises(InvalidFile, match=f"instruction 2: .*{reason}"):
        read[1]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"no\.jsonl: cannot be opened"):
        InstructionFile(tmp_path / "no.jsonl")


@pytest.mark.parametrize("turns", [(), (asked("describe"),), (answered("a"), asked("describe"))])
def test_turns_go_from_user_to_assistant(turns: tuple[object, ...]) -> None:
    with pytest.raises(InvalidValue, match="not user and assistant"):
        Instruction("describe", ("a.png",), turns)  # type: ignore[arg-type]


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'caption'"):
        asked("captoin")


SAID = Narrative(
    "139",
    "A red cup stands on the table.",
    (Utterance("A red cup", 0.0, 1.0), Utterance("stands on", 1.0, 2.0), Utterance("the table.", 2.0, 3.0)),
    Trace([(0.1, 0.1, 0.0), (0.2, 0.3, 0.5), (0.3, 0.1, 0.9), (0.5, 0.9, 1.5), (0.9, 0.8, 2.5), (0.8, 0.9, 2.9)]),
)


def test_a_narrative_teaches_the_three_tasks_of_pretraining() -> None:
    caption, trajectory, both = of_narrative(SAID, "139.jpg", (640, 480))
    assert [one.task for one in (caption, trajectory, both)] == ["caption", "trajectory", "narrate"]
    assert caption.turns[1].parts == (SAID.caption,)
    (drawn,) = trajectory.turns[1].trajectories
    assert caption.turns[0].trajectories == [drawn]
    words = "".join(part for part in both.turns[1].parts if isinstance(part, str)).split()
    assert words == SAID.caption.split()
    points = sum(len(one.trace) for one in both.turns[1].trajectories)
    assert points == len(drawn.trace)


def test_each_phrase_has_the_trajectory_that_belongs_to_it() -> None:
    parts = of_narrative(SAID, "139.jpg", (640, 480))[2].turns[1].parts
    first = next(part for part in parts if isinstance(part, Trajectory))
    assert parts[0] == "A red cup "
    assert first.trace.end_s < 1.0


def test_a_narrative_without_a_trace_teaches_nothing() -> None:
    with pytest.raises(InvalidValue, match="lacks timed words or a trace"):
        of_narrative(Narrative("1", "a cup"), "1.jpg", (10, 10))
