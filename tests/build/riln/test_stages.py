"""The three stages on narratives made by hand, and what templates write about any narrative."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.build.riln.assembly import dialogue_example, question_example
from saywhere.build.riln.checks import fault_of
from saywhere.build.riln.drafts import CELLS, Ledger
from saywhere.build.riln.geometry import direction, manner, place
from saywhere.build.riln.grounding import ground
from saywhere.build.riln.templates import NO_THING, TemplateGenerator
from saywhere.core import Narrative, Trace, Utterance
from saywhere.core.trajectory import from_text
from saywhere.language.phrases import PhraseSpan, phrase_spans
from tests.build.riln.told import grounded, told


def test_stage_1_thins_unimportant_phrases_and_gives_each_word_its_points() -> None:
    said = tuple(Utterance(word, float(i), i + 1.0) for i, word in enumerate(["A", "dog", "lies", "there."]))
    up = 0.5 + 6 / 480  # Six pixels: over the tolerance of importance 5, below that of importance 1.
    xyt = [(0.1, 0.5, 0.0), (0.2, up, 0.5), (0.3, 0.5, 1.5), (0.4, 0.5, 2.0), (0.5, up, 2.5), (0.6, 0.5, 3.5)]
    narrative = Narrative("7", "A dog lies there.", said, Trace(xyt))
    made = ground(narrative, [PhraseSpan(0, 2, 5, 1, "dog"), PhraseSpan(2, 4, 1)], (640, 480))
    assert made.trace.points.tolist() == [list(point) for point in xyt[:4] + xyt[5:]]
    dog, lies = made.phrases
    assert (dog.text, dog.noun, dog.points) == ("a dog", "dog", (0, 3))
    assert [(word.text, word.first, word.stop) for word in dog.words] == [("A", 0, 2), ("dog", 2, 3)]
    assert (lies.text, lies.noun, lies.points) == ("lies there", "", (3, 5))
    assert made.sentences == (("A dog lies there.", 0, 2),)
    assert made.path([0]) == "<traj>(100,500),(200,512),(300,500)</traj>"
    assert (made.points_before, made.things) == (6, [0])


def test_the_rules_find_phrases_importance_and_nouns() -> None:
    spans = phrase_spans(told().words)
    named = {(span.first, span.stop): (span.importance, span.noun) for span in spans if span.noun}
    assert named == {(0, 2): (5, "dog"), (4, 6): (5, "grass"), (10, 13): (5, "house")}
    assert [span.first for span in spans[1:]] == [span.stop for span in spans[:-1]]


def test_nouns_of_the_photo_itself_are_no_things() -> None:
    said = tuple(Utterance(word, float(i), i + 1.0) for i, word in enumerate(["the", "image"]))
    narrative = Narrative("7", "the image", said, Trace([(0.5, 0.5, 0.5), (0.5, 0.5, 1.5)]))
    made, ledger = ground(narrative, [PhraseSpan(0, 2, 5, 1, "image")], (640, 480)), Ledger()
    assert TemplateGenerator().questions(made, 1, np.random.default_rng(0), ledger) == []
    assert ledger.rejections == {NO_THING: 1}


def test_stage_2_asks_once_in_every_cell_and_tells_the_truth() -> None:
    made = grounded()
    drafts = TemplateGenerator().questions(made, 1, np.random.default_rng(0), Ledger())
    assert [(draft.level, draft.kind) for draft in drafts] == list(CELLS)
    asked = {(draft.level, draft.kind): draft for draft in drafts}
    assert asked["global", "interpretation"].answer == "A dog lies on the grass. Behind it there is a red house."
    assert asked["global", "grounding"].answer == made.path(made.everything)
    order = asked["global", "reasoning"].reasoning
    assert order is not None
    assert order.claim == (
        "It begins with a dog at the bottom left and goes on to the grass at the bottom and a red house at the top "
        "right; most time, 3.0 s, goes to a red house."
    )
    assert [thought.level for thought in order.because] == ["object", "object", "object", "local"]
    for kind in ("interpretation", "grounding"):
        draft = asked["object", kind]  # type: ignore[index]
        text = made.phrases[draft.phrases[0]].text
        words, path = (draft.answer, draft.question) if kind == "interpretation" else (draft.question, draft.answer)
        assert text in words.lower()
        assert made.path(draft.phrases) in path


def test_which_way_from_one_thing_to_another_is_what_the_points_say() -> None:
    made = grounded()
    for seed in range(6):
        drafts = TemplateGenerator().questions(made, 1, np.random.default_rng(seed), Ledger())
        (draft,) = [draft for draft in drafts if (draft.level, draft.kind) == ("object", "reasoning")]
        asked = draft.question
        ways = {
            ("a dog", "a red house"): "to the right and up",
            ("a red house", "a dog"): "to the left and down",
            ("the grass", "a red house"): "to the right and up",
        }
        pair = next(pair for pair in ways if -1 < asked.find(pair[0]) < asked.find(pair[1]))
        assert draft.answer.endswith(f"So from {pair[0]} to {pair[1]} the pointer has to go {ways[pair]}.")


def test_stage_3_ends_every_dialogue_in_a_synthesis() -> None:
    made, generator, rng = grounded(), TemplateGenerator(), np.random.default_rng(1)
    asked = generator.questions(made, 1, rng, Ledger())
    dialogues = generator.dialogues(made, asked, rng, Ledger())
    assert 3 <= len(dialogues) <= 5
    for dialogue in dialogues:
        assert [turn.role for turn in dialogue.turns] == ["user", "assistant"] * (len(dialogue.turns) // 2)
        assert len(dialogue.turns) in (6, 8)
        last = dialogue.turns[-1].text
        assert last.startswith("We spoke of ")
        assert dialogue.reasoning is not None
        assert dialogue.reasoning.claim == last
    assert len({dialogue.turns for dialogue in dialogues}) == len(dialogues)


def test_an_example_counts_points_of_its_own_part() -> None:
    made = grounded()
    drafts = TemplateGenerator().questions(made, 1, np.random.default_rng(0), Ledger())
    (draft,) = [draft for draft in drafts if (draft.level, draft.kind) == ("object", "grounding")]
    example = question_example(made, draft, 0, "templates")
    (phrase,) = example.phrases
    assert phrase.points == (0, len(example.trajectory))
    assert [word.stop for word in phrase.words][-1] == len(example.trajectory)
    cells = from_text(made.path(draft.phrases))[0].points_xy * 1000 - 0.5
    assert [point[:2] for point in example.trajectory] == [tuple(cell) for cell in cells.round().astype(int).tolist()]


@pytest.mark.parametrize(
    ("step", "words"),
    [((0.5, 0.0), "to the right"), ((-0.3, -0.3), "to the left and up"), ((0.01, 0.4), "down"), ((0.01, 0.0), "")],
)
def test_directions(step: tuple[float, float], words: str) -> None:
    assert direction(np.array(step)) == words


@pytest.mark.parametrize(
    ("xy", "words"),
    [
        ((0.5, 0.5), "in the middle"),
        ((0.1, 0.5), "on the left"),
        ((0.5, 0.9), "at the bottom"),
        ((1, 0), "at the top right"),
    ],
)
def test_places(xy: tuple[float, float], words: str) -> None:
    assert place(np.array(xy)) == words


def test_manners_of_paths() -> None:
    square = np.array([(0.2, 0.2), (0.6, 0.2), (0.6, 0.6), (0.2, 0.6), (0.2, 0.25)])
    assert manner(square) == ("goes around and comes back", "a part 40 % of the photo wide and 40 % high")
    assert manner(square[:2])[0] == "sweeps to the right"
    assert manner(square[:1])[0] == "stays almost where it is"


_NOUNS = ("dog", "house", "tree", "cup", "woman", "ball")
_places = st.tuples(st.floats(-0.2, 1.2), st.floats(-0.2, 1.2))


@st.composite
def _grounds(draw: st.DrawFn) -> tuple[Narrative, list[PhraseSpan]]:
    """Phrases of two words, "a dog" or "and then", under points anywhere, on and off the photo."""
    nouns = draw(st.lists(st.sampled_from((*_NOUNS, "")), min_size=1, max_size=7))
    words = [word for noun in nouns for word in (("a", noun) if noun else ("and", "then."))]
    said = tuple(Utterance(word, float(i), i + 1.0) for i, word in enumerate(words))
    times = sorted(draw(st.lists(st.floats(0, len(words)), min_size=1, max_size=40)))
    xy = draw(st.lists(_places, min_size=len(times), max_size=len(times)))
    trace = Trace([(x, y, t) for (x, y), t in zip(xy, times, strict=True)])
    spans = [
        PhraseSpan(2 * i, 2 * i + 2, 5 if noun else 1, 2 * i + 1 if noun else -1, noun) for i, noun in enumerate(nouns)
    ]
    return Narrative("7", " ".join(words), said, trace), spans


@given(_grounds(), st.integers(0, 2**32), st.integers(1, 3))
def test_whatever_templates_write_passes_every_check(
    told: tuple[Narrative, list[PhraseSpan]], seed: int, per_cell: int
) -> None:
    made, rng, ledger, generator = ground(*told, (640, 480)), np.random.default_rng(seed), Ledger(), TemplateGenerator()
    asked = generator.questions(made, per_cell, rng, ledger)
    spoken = generator.dialogues(made, asked, rng, ledger)
    assert bool(asked) == bool(made.things) == (not ledger.rejections)
    examples = [question_example(made, draft, 0, "t") for draft in asked]
    dialogues = [dialogue_example(made, draft, 0, "t") for draft in spoken]
    assert len(dialogues) in ((3, 4, 5) if asked else (0,))
    assert all(4 <= len(example.turns) <= 8 and "We spoke of" in example.turns[-1].text for example in dialogues)
    for example in examples + dialogues:
        assert fault_of(example) == ""
        assert all(0 <= n <= 999 for x, y, _ in example.trajectory for n in (x, y))
        assert all(0 <= word.first <= word.stop <= len(example.trajectory) for p in example.phrases for word in p.words)
