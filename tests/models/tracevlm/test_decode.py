"""Answers: written with what was read kept, and read whatever a model may say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from saywhere.core import Box, InvalidValue, Trace
from saywhere.models.search import GenerationConfig
from saywhere.models.tracevlm.batch import collate
from saywhere.models.tracevlm.decode import AnswerSteps, segment, write
from saywhere.models.tracevlm.examples import SegmentTarget, answered, asked
from saywhere.models.tracevlm.network import TraceVLM
from saywhere.models.tracevlm.parsing import AnswerText, parse
from saywhere.models.tracevlm.qwen import SEGMENT_TOKENS, VisualFeatures
from saywhere.models.tracevlm.trajectory import Trajectory
from tests.models.tracevlm import small

DRAWN = Trajectory(small.TRACE)
TALKS = ([asked("caption", DRAWN)], [asked("describe")], [asked("reason", Trajectory(Trace([(0.5, 0.5, 0)])), "why?")])
SEGMENT = "".join(SEGMENT_TOKENS)
SCRAPS = (
    "<traj>",
    "</traj>",
    "(1,2)",
    "(",
    ",",
    "(2000,-3)",
    "5,",
    "a cup",
    "<|box_start|>",
    "<|box_end|>",
    "< TRAJ >",
    "2:",
    "9:",
)


@pytest.fixture(scope="module", params=small.KINDS)
def model(request: pytest.FixtureRequest) -> TraceVLM:
    return small.awake(small.model(request.param))


def look(model: TraceVLM) -> VisualFeatures:
    with torch.no_grad():
        return model.body.see(*model.reader.inputs.prepare([small.photo()]))


def test_steps_give_the_scores_of_reading_everything_at_once(model: TraceVLM) -> None:
    said = "a cup"
    read = collate(model.reader, [[*TALKS[0], answered(said)]], [[small.photo()]])
    end = int(read.learnt[0].nonzero()[0])
    with torch.no_grad():
        whole = model(read)[0]
        shown, _ = model.perceive(look(model), read.points)
        steps = AnswerSteps(model, read.ids[:, :end], read.there[:, :end], shown)
        scores = [steps.start(), *(steps.advance(read.ids[:, end + i]) for i in range(len(said)))]
    torch.testing.assert_close(torch.cat(scores), whole[end - 1 : end + len(said)], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("how", [GenerationConfig(max_words=6), GenerationConfig("beam", beams=3, max_words=4)])
def test_answers_are_the_same_alone_and_among_others(model: TraceVLM, how: GenerationConfig) -> None:
    seen = look(model)
    together = write(model, seen, TALKS, how)
    alone = [write(model, seen, [talk], how)[0] for talk in TALKS]
    assert [one.tokens for one in together] == [one.tokens for one in alone]
    assert [one.score for one in together] == pytest.approx([one.score for one in alone], abs=1e-4)


def test_sampling_depends_on_the_seed_alone(model: TraceVLM) -> None:
    seen = look(model)
    texts = [write(model, seen, TALKS[:1], GenerationConfig("nucleus", max_words=5, seed=s))[0].text for s in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_an_image_token_is_never_said(model: TraceVLM) -> None:
    image = model.reader.inputs.special["<|image_pad|>"]
    said = write(model, look(model), TALKS, GenerationConfig("nucleus", max_words=30, temperature=5.0, top_p=1.0))
    assert all(image not in one.tokens for one in said)
    assert all(max(one.tokens) < len(model.reader.inputs.tokenizer) for one in said)


def test_masks_are_cut_out_for_every_six_tokens(model: TraceVLM) -> None:
    words, _ = model.reader.parts(["it is "])
    six = [model.reader.inputs.special[name] for name in SEGMENT_TOKENS]
    seen = look(model)
    rows, cols, _ = seen.patches[0].shape
    masks = segment(model, seen, TALKS[0], [*words, *six, *words, *six])
    assert [mask.shape for mask in masks] == [(4 * rows, 4 * cols)] * 2
    assert [mask.shape for mask in segment(model, seen, TALKS[0])] == [(4 * rows, 4 * cols)]
    with pytest.raises(InvalidValue, match="cuts nothing out"):
        segment(model, seen, TALKS[0], words)


def test_frames_are_told_and_cut_out_one_by_one(model: TraceVLM) -> None:
    frames = [small.photo(), small.photo(60, 90, seed=1)]
    with torch.no_grad():
        seen = model.body.see(*model.reader.inputs.prepare(frames))
    talk = [asked("interpret", Trajectory(small.TRACE, (0, 1, 1)))]
    how = GenerationConfig(max_words=4)
    assert write(model, seen, [talk, talk], how)[1].tokens == write(model, seen, [talk], how)[0].tokens
    for number, patches in enumerate(seen.patches):
        rows, cols, _ = patches.shape
        assert [mask.shape for mask in segment(model, seen, talk, images=[number])] == [(4 * rows, 4 * cols)]
    said, _ = model.reader.parts([SegmentTarget(image=1), " and ", SegmentTarget()])
    found = parse(model.reader.text(said), images=2)
    both = segment(model, seen, talk, said, found.segments)
    assert [mask.shape for mask in both] == [tuple(4 * n for n in seen.patches[image].shape[:2]) for image in (1, 0)]


def test_masks_see_the_turns_that_the_answer_saw(model: TraceVLM) -> None:
    seen, talk = look(model), [*TALKS[0], answered("a cup"), *TALKS[1]]
    said, _ = model.reader.parts([SegmentTarget()])
    whole = segment(model, seen, talk, said)
    alone = segment(model, seen, TALKS[1], said)
    forgotten = segment(model, seen, talk, said, forgotten=2)
    torch.testing.assert_close(forgotten, alone)
    assert not torch.allclose(whole[0], alone[0])


def test_masks_are_those_that_training_compares(model: TraceVLM) -> None:
    one = next(one for one in small.instructions() if one.task == "mask")
    read = collate(model.reader, [one.turns], [[small.photo()]])
    answer = model.reader.parts(one.turns[1].parts)[0]
    with torch.no_grad():
        states, seen, points = model.states(read)
        learnt = model.masks(states, read, seen, points)[0].logits
    masks = torch.stack(segment(model, look(model), one.turns[:1], answer))
    torch.testing.assert_close(masks, learnt, atol=1e-5, rtol=1e-4)


@given(
    st.lists(st.sampled_from((*SCRAPS, *SEGMENT_TOKENS)) | st.text(max_size=5), max_size=30).map("".join),
    st.integers(1, 3),
)
def test_whatever_a_model_says_is_read(text: str, images: int) -> None:
    found = parse(text, images)
    for piece in found.pieces:
        if piece.trace is not None:
            assert ((piece.trace.xy > 0) & (piece.trace.xy < 1)).all()
        assert "traj>" not in piece.words.replace(" ", "").lower() or "<" not in piece.words
    assert len(found.segments) <= text.count(SEGMENT_TOKENS[0])
    assert max(found.segments, default=0) < images
    assert all(max(part.frames) < images for part in found.parts if isinstance(part, Trajectory))
    assert all(0 < number < 1 for box in found.boxes for number in box.xyxy)


@given(
    st.lists(st.sampled_from([*SCRAPS, *SEGMENT_TOKENS, "<", ">", " ", "x < y", "\ufffd", "2:"])).map("".join),
    st.integers(1, 2),
)
@example("(1,2) 2:<traj>", 2)
def test_words_that_are_heard_letter_by_letter_are_those_of_the_answer(raw: str, images: int) -> None:
    heard: list[str] = []
    text = AnswerText(heard.append, images)
    for end in range(len(raw)):
        text.write(raw[:end])
    text.end(parse(raw, images).text)
    assert "".join(heard) == parse(raw, images).text


def test_an_answer_is_heard_while_it_is_written(model: TraceVLM) -> None:
    heard: list[str] = []
    [said] = write(model, look(model), TALKS[:1], GenerationConfig(max_words=6, min_words=6), heard.append)
    assert len(heard) == 5  # the last token is not read on
    assert all(len(before) < len(after) for before, after in pairwise(heard))
    assert said.text.startswith(heard[-1].rstrip("\ufffd"))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_a_trajectory_comes_back_within_half_a_bin(points: list[tuple[float, float]]) -> None:
    trace = Trace([(x, y, i) for i, (x, y) in enumerate(points)])
    cells = [(min(int(x * 1000), 999), min(int(y * 1000), 999)) for x, y in points]
    found = parse("a cup <traj>" + ",".join(f"({x},{y})" for x, y in cells) + "</traj> there")
    assert found.lost == ()
    assert [piece.words for piece in found.pieces] == ["a cup", "there"]
    assert found.pieces[0].trace is not None
    assert np.abs(found.pieces[0].trace.xy - trace.xy).max() <= 0.0005 + 1e-9


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("<traj>(1,2)", "trajectory 1: no closing tag"),
        ("<traj>(1,2),(3000,5)</traj>", "trajectory 1: 1 points out of range"),
        ("a <traj></traj> b <traj>one</traj>", "trajectory 2: no points"),
        ("<|box_start|>(1,2)<|box_end|>", "box 1: no two corners"),
        ("<|box_start|>(5,5),(5,9)<|box_end|>", "box 1: no two corners"),
        ("".join(SEGMENT_TOKENS[:4]), "1 mask without all of its 6 tokens"),
        ("".join((*SEGMENT_TOKENS[:4], *SEGMENT_TOKENS[:2], *SEGMENT_TOKENS)), "2 masks without all of their 6 tokens"),
    ],
)
def test_what_is_lost_is_said(text: str, lost: str) -> None:
    assert lost in parse(text).lost


def test_boxes_and_masks_are_found_and_left_out_of_the_words() -> None:
    found = parse(f"a cup <|box_start|>(100,200),(300,400)<|box_end|> and {SEGMENT}{SEGMENT} a cat<|im_end|>")
    assert found.text == "a cup and a cat"
    assert found.boxes == (Box(0.1005, 0.2005, 0.3005, 0.4005),)
    assert (found.segments, found.lost) == ((0, 0), ())
    assert found.parts == ("a cup", *found.boxes, "and", SegmentTarget(), SegmentTarget(), "a cat")


def test_of_several_images_a_number_says_which_one_something_is_on() -> None:
    said = f"it 1:<traj>(1,2)</traj>2:<traj>(3,4),(5,6)</traj> and 2:{SEGMENT}{SEGMENT} at 9:<traj>(7,8)</traj>"
    found = parse(said, images=2)
    first, last = (part for part in found.parts if isinstance(part, Trajectory))
    assert (first.frames, last.frames) == ((0, 1, 1), (0,))
    assert (found.text, found.segments) == ("it and at", (1, 0))
    assert found.lost == ("image 9: there are 2",)
    assert [piece.words for piece in found.pieces] == ["it", "", "and at"]
    assert parse("at 9:<traj>(7,8)</traj>").text == "at 9:", "of one image nothing has a number"


def test_what_is_on_other_frames_is_read_as_it_was_written(model: TraceVLM) -> None:
    drawn = Trajectory(Trace([(0.1005, 0.2005, 0.0), (0.5005, 0.5005, 1.0), (0.9005, 0.3005, 2.0)]), (0, 1, 1))
    parts = ("it goes", drawn, "to", SegmentTarget(image=1), SegmentTarget(), "there")
    found = parse(model.reader.text(model.reader.parts(parts)[0]), images=2)
    assert model.reader.parts(found.parts)[0] == model.reader.parts(parts)[0]
    assert [part if isinstance(part, str | SegmentTarget) else part.frames for part in found.parts] == [
        *("it goes", (0, 1, 1), "to", SegmentTarget(image=1), SegmentTarget(), "there")
    ]
