"""What is refused: coordinates, form, boxes, overlap, splits."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from saywhere.build.photo_boxes import PhotoBoxes
from saywhere.build.riln import checks
from saywhere.build.riln.assembly import dialogue_example, question_example
from saywhere.build.riln.checks import box_fault, fault_of
from saywhere.build.riln.drafts import Ledger, QuestionDraft
from saywhere.build.riln.example import DialogueTurn, RilnExample, Thought
from saywhere.build.riln.overlap import EvaluationText, grams
from saywhere.build.riln.selection import KEPT_OUT, NO_TIMES, NO_TRACE, OTHER_SPLIT, UNREADABLE, Selection
from saywhere.build.riln.templates import TemplateGenerator
from saywhere.core import Narrative, Trace
from saywhere.formats.record import InvalidRecord
from tests.build.riln.told import grounded, told

DOG = "<traj>(150,800),(200,849)</traj>"


def asked(kind: Any = "interpretation", question: str = f"What is at {DOG}?", answer: str = "A dog.") -> RilnExample:
    return question_example(grounded(), QuestionDraft("object", kind, question, answer, (0,)), 0, "t")


def spoken() -> RilnExample:
    made, rng = grounded(), np.random.default_rng(0)
    drafts = TemplateGenerator().questions(made, 1, rng, Ledger())
    return dialogue_example(made, TemplateGenerator().dialogues(made, drafts, rng, Ledger())[0], 0, "t")


def test_a_good_question_and_a_good_dialogue_pass() -> None:
    assert fault_of(asked()) == ""
    assert fault_of(spoken()) == ""


@pytest.mark.parametrize(
    ("example", "fault"),
    [
        (asked(answer=""), checks.BAD_SCHEMA),
        (asked(answer="half a \ud800 character"), checks.BAD_SCHEMA),
        (asked(question="What is at <traj>(150,800)?"), checks.BAD_PATH),
        (asked(question="What is at (150,800)</traj>?"), checks.BAD_PATH),
        (asked(question="What is at <traj>nothing</traj>?"), checks.BAD_PATH),
        (asked(question="What is at <traj>(150,1000)</traj>?"), checks.BAD_PATH),
        (asked(question="What is at <traj>(150,800),(270,800)</traj>?"), checks.OUTSIDE),
        (asked("grounding", answer="There."), checks.NO_PATH),
        (asked(answer="A cat."), checks.UNSAID),
        (asked("reasoning"), checks.BAD_TREE),
    ],
)
def test_a_bad_question_is_refused_for_its_reason(example: RilnExample, fault: str) -> None:
    assert fault_of(example) == fault


def test_a_point_within_one_per_cent_of_what_was_pointed_at_passes() -> None:
    assert fault_of(asked(question="What is at <traj>(260,800)</traj>?")) == ""
    assert fault_of(asked(question="What is at <traj>(261,800)</traj>?")) == checks.OUTSIDE


def test_a_tree_without_end_is_refused() -> None:
    tree = Thought("So it is.", "local")
    for _ in range(6):
        tree = Thought("So it is.", "local", (tree,))
    assert fault_of(msgspec.structs.replace(asked(), reasoning=tree)) == checks.BAD_TREE
    assert fault_of(msgspec.structs.replace(asked(), reasoning=tree.because[0])) == ""


def test_a_dialogue_must_alternate_have_four_to_eight_turns_and_end_in_a_synthesis() -> None:
    good = spoken()

    def fault(*turns: DialogueTurn) -> str:
        return fault_of(msgspec.structs.replace(good, turns=turns))

    user, said = DialogueTurn("user", "A dog and a house?"), DialogueTurn("assistant", "A dog and a house.")
    assert fault(user, said, user, said) == ""
    assert fault(user, said) == checks.BAD_FORM
    assert fault(*(user, said) * 5) == checks.BAD_SCHEMA
    assert fault(user, user, said, said) == checks.BAD_FORM
    assert fault(user, said, user, DialogueTurn("assistant", "All clear.")) == checks.NO_SYNTHESIS
    assert fault(user, said, user, DialogueTurn("assistant", "A dog.")) == checks.NO_SYNTHESIS


@pytest.mark.parametrize(
    ("boxes", "crowds", "fault"),
    [
        ({"dog": ((0.1, 0.7, 0.3, 0.9),)}, set(), ""),
        ({"dog": ((0.7, 0.1, 0.9, 0.3),)}, set(), checks.OFF_BOX),
        ({"dog": ((0.7, 0.1, 0.9, 0.3), (0.1, 0.7, 0.3, 0.9))}, set(), ""),
        ({"cat": ((0.1, 0.7, 0.3, 0.9),)}, set(), checks.NO_BOX),
        ({}, {"dog"}, ""),
    ],
)
def test_an_object_must_be_pointed_at_where_its_box_is(boxes: Any, crowds: set[str], fault: str) -> None:
    assert box_fault(asked(), PhotoBoxes("7", boxes, frozenset(crowds))) == fault


def test_a_dialogue_is_refused_only_if_most_of_its_things_are_elsewhere() -> None:
    assert box_fault(spoken(), PhotoBoxes("7", {"dog": ((0.7, 0.1, 0.9, 0.3),)})) == checks.OFF_BOX
    assert box_fault(spoken(), PhotoBoxes("7", {"dog": ((0.1, 0.7, 0.3, 0.9),)})) == ""


def test_five_grams_leave_out_paths_and_signs() -> None:
    text = "A dog, on <traj>(1,2),(3,4)</traj> the GRASS there!"
    assert grams(text) == ["a dog on the grass", "dog on the grass there"]
    assert grams("a dog on the") == []


def test_overlap_is_the_share_of_known_five_grams() -> None:
    known = EvaluationText.of(["a dog on the grass", "two cats"])
    assert (known.sentences, len(known)) == (2, 1)
    assert known.shared(["A dog on the grass there", "a dog"]) == (1, 2)
    assert known.digest != EvaluationText.of(["a dog on the grass"]).digest


@pytest.mark.parametrize(
    ("dataset", "fault"),
    [
        ("mscoco_train2017", ""),
        ("mscoco_val2017", OTHER_SPLIT),
        ("open_images_validation", OTHER_SPLIT),
        ("Flickr30k-test", OTHER_SPLIT),
        ("train_val", OTHER_SPLIT),
        ("oval office", ""),
        ("", ""),
    ],
)
def test_only_training_splits_are_taken(dataset: str, fault: str) -> None:
    assert Selection().fault(told(dataset_id=dataset)) == fault
    assert Selection(any_split=True).fault(told(dataset_id=dataset)) == ""


def test_other_records_that_cannot_be_used_have_their_reasons() -> None:
    chosen = Selection(keep_out=frozenset({"000000000007"}))
    assert chosen.fault(told("7")) == KEPT_OUT
    assert chosen.fault(told("8")) == ""
    assert chosen.fault(InvalidRecord("file", 1, "is bad")) == UNREADABLE
    assert chosen.fault(Narrative("8", "a dog", (), told().trace)) == NO_TIMES
    assert chosen.fault(Narrative("8", "a dog", told().utterances, Trace([(0.5, 0.5, 99.0)]))) == NO_TRACE
