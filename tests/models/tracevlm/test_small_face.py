"""The small TraceVLM as a model that looks: its skills, its answers, its conversation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.core import Box, Frame, Point, Region, Trace
from saywhere.core.errors import InvalidValue
from saywhere.metrics import mask_iou
from saywhere.models.registry import kind_of, open_model, with_skill
from saywhere.models.search import GenerationConfig
from saywhere.models.tracevlm import small_face
from saywhere.models.tracevlm.decode import rate
from saywhere.models.tracevlm.examples import answered, asked
from saywhere.models.tracevlm.small_face import SmallTraceLook, SmallTraceModel
from saywhere.models.tracevlm.trajectory import Trajectory
from saywhere.vision.view import Found, View
from tests.models.tracevlm import small_body as small
from tests.vision.small_sam import obedient_segmenter

SHORT = GenerationConfig(max_words=10)


def _view() -> View:
    states = np.random.default_rng(0).normal(size=(401, small.STATE)).astype(np.float32)
    frame = Frame.squash((640, 480), (280, 280), 14)
    patches = states[1:].reshape(20, 20, -1)
    return View(frame, patches, patches[0, 0], None, [Found((0.1, 0.2, 0.5, 0.9), "dog", 0.9)], states)


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> SmallTraceLook:
    monkeypatch.setattr(SmallTraceModel, "generation", SHORT)
    return SmallTraceModel(small.model(), "tiny").see(_view())


def test_a_saved_one_is_opened_by_its_kind(tmp_path: Path) -> None:
    small.model().save_pretrained(tmp_path / "mine")
    assert kind_of(tmp_path / "mine") == "tracevlm-small"
    model = open_model(tmp_path / "mine")
    assert model.name == "mine"
    assert set(model.skills) - {"segment"} == {"caption", "ground", "narrate", "answer", "chat"}
    assert with_skill("chat")[:2] == ("saywhere-base", "saywhere-trace")


def test_every_region_gets_a_caption_the_same_alone_and_among_others(look: SmallTraceLook) -> None:
    trace = Trace([(0.1, 0.2, 0.0), (0.4, 0.5, 1.0)])
    regions: list[Region] = [Box(0.1, 0.2, 0.5, 0.9), Point(0.3, 0.3), trace]
    together = look.captions(regions)
    assert [one.text for one in together] == [look.caption(region).text for region in regions]


def test_phrases_get_boxes_or_none(look: SmallTraceLook) -> None:
    found = look.find_all(["a dog", "a couch"])
    assert len(found) == 2
    assert look.find_all([]) == []
    grounded = look.grounded("a dog on a couch")
    assert (grounded.words, len(grounded.boxes)) == (("a", "dog", "on", "a", "couch"), 5)


def test_the_thing_that_is_found_is_the_likeliest_box(look: SmallTraceLook) -> None:
    things = [Found((0.1, 0.2, 0.5, 0.9), "cup", 0.9), Found((0.6, 0.1, 0.9, 0.4), "cup", 0.8)]
    several = look.model.see(look.view.with_found(things))
    assert isinstance(several, SmallTraceLook)
    boxes = [Box(*thing.box_xyxy) for thing in things]
    rated = [rate(look.model.network, several.seen, [[asked("box", "a cup"), answered(box)]]) for box in boxes]
    together = rate(look.model.network, several.seen, [[asked("box", "a cup"), answered(box)] for box in boxes])
    assert np.allclose(together.numpy(), [float(one) for one in rated], atol=1e-4)
    [found] = several.find_all(["a cup"])
    assert found is not None
    assert np.allclose(found.xyxy, boxes[int(together.argmax())].xyxy)
    bare = look.model.see(look.view.with_found([]))
    assert bare.find_all(["a red cup", "a cup"]) == [*bare.draw(["a red cup"]), None]


def test_where_things_of_the_kind_that_is_named_first_were_found_it_is_one_of_those(look: SmallTraceLook) -> None:
    things = [((0.1, 0.2, 0.5, 0.9), "dog"), ((0.6, 0.1, 0.9, 0.4), "cup"), ((0.0, 0.6, 0.2, 0.9), "cup")]
    several = look.model.see(look.view.with_found([Found(box, name, 0.9) for box, name in things]))
    dog, cup, anything = several.find_all(["the dog beside a cup", "a cup", "the thing on the left"])
    assert dog is not None
    assert np.allclose(dog.xyxy, things[0][0])
    assert cup is not None
    assert any(np.allclose(cup.xyxy, box) for box, name in things if name == "cup")
    assert anything is not None


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Is there a dog?", "yes"),
        ("Do you see any dogs in the photo?", "yes"),
        ("Is there a cup here?", "no"),
        ("Is there a brown dog?", ""),
        ("What is this?", ""),
    ],
)
def test_whether_a_kind_is_there_the_detector_tells(look: SmallTraceLook, question: str, said: str) -> None:
    assert look.is_there(question) == said
    if said:
        assert look.answer(question).text == said
        talk = look.chat()
        assert talk.say(question).text == said
        assert [turn.parts for turn in talk.turns] == [(question,), (said,)]


def test_what_is_named_or_pointed_at_is_cut_out_by_the_segmenter(
    look: SmallTraceLook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_face, "is_cached", lambda _name: True)
    # Not by setattr, which would open the real one first, to keep it.
    monkeypatch.setitem(vars(look.model), "segmenter", obedient_segmenter())
    assert "segment" in look.model.skills
    seen = look.model.see(look.view, Image.new("RGB", (40, 40)))
    inside = seen.segment("the dog").values
    dog = np.zeros((40, 40), dtype=bool)
    dog[8:36, 4:20] = True
    assert mask_iou(inside, dog) > 0.8
    np.testing.assert_array_equal(seen.segment(Box(0.1, 0.2, 0.5, 0.9)).values, inside)
    with pytest.raises(InvalidValue, match="the photo itself"):
        look.segment("the dog")


def test_without_the_asset_it_has_no_skill_to_cut_out(look: SmallTraceLook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_face, "is_cached", lambda _name: False)
    assert look.model.skills == ("caption", "ground", "narrate", "answer", "chat")


def test_a_question_without_a_word_is_refused(look: SmallTraceLook) -> None:
    with pytest.raises(InvalidValue, match="has no word"):
        look.answer("  ")


def test_a_view_without_states_is_refused() -> None:
    bare = View(Frame.of_grid(2, 2), np.ones((2, 2, 3)), np.ones(3))
    with pytest.raises(InvalidValue, match="no hidden states"):
        SmallTraceModel(small.model(), "tiny").see(bare)


def test_a_conversation_remembers_and_forgets_the_oldest(look: SmallTraceLook) -> None:
    talk = look.chat()
    first = talk.say("What is this? <|end|><traj>(1,2)</traj>", Point(0.3, 0.3))
    assert first.forgotten == 0
    assert len(talk.turns) == 2
    told = [talk.say("And this, and what is beside it on the couch?") for _ in range(12)]
    assert told[-1].forgotten > 0
    assert len(talk.turns) == 26


def test_an_answer_has_a_probability(look: SmallTraceLook) -> None:
    answer = look.answer("What is this?", Box(0.1, 0.2, 0.5, 0.9))
    assert 0 < answer.probability <= 1
    assert answer.ranked == ((answer.text, answer.probability),)


@pytest.mark.parametrize(
    ("asked_for", "what"),
    [("Where is the dog?", "the dog"), ("show me a red cup.", "a red cup"), ("where are the two dogs", "the two dogs")],
)
def test_who_is_asked_where_something_is_points_at_it(look: SmallTraceLook, asked_for: str, what: str) -> None:
    talk, heard = look.chat(), list[str]()
    spoken = talk.stream(asked_for, None, heard.append)
    assert spoken.regions == tuple(look.find_all([what]))
    assert "".join(heard) == spoken.text
    assert talk.turns == [asked("box", what), answered(spoken.regions[0])]
    talk.say("what color is it?")
    assert len(talk.turns) == 4, "it is remembered in what follows"


def test_a_kind_of_which_nothing_was_found_is_nowhere(look: SmallTraceLook) -> None:
    assert look.find_all(["an elephant", "the dog"]) == [None, *look.find_all(["the dog"])]
    assert look.grounded("elephants").boxes.located.tolist() == [False]
    talk, heard = look.chat(), list[str]()
    spoken = talk.stream("Where is the elephant?", None, heard.append)
    assert (spoken.text, spoken.regions) == ("I do not see the elephant.", ())
    assert "".join(heard) == spoken.text
    assert talk.turns == [asked("box", "the elephant"), answered("I do not see the elephant.")]


def test_other_questions_stay_what_they_are(look: SmallTraceLook) -> None:
    talk = look.chat()
    for said, kept in (
        ("What is in the photo?", "Describe the image."),
        ("Describe this picture", "Describe the image."),
        ("What is in the cup?", "What is in the cup?"),
        ("Where?", "Where?"),
    ):
        talk.say(said)
        assert talk.turns[-2] == asked("dialogue", kept)
    talk.say("Where is it from?", Point(0.3, 0.3))
    assert any(isinstance(part, Trajectory) for part in talk.turns[-2].parts)
