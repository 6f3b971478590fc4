"""What a model can do, from words and images in to words, boxes and narratives out; batches, and the baselines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from saywhere.core import InvalidValue, Narrative, Trace, UnknownName, Utterance, WordBoxes
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr import (
    MITR,
    MitrConfig,
    Skills,
    collate,
    decode,
    example,
    example_of,
    guided_boxes,
    guided_example,
    trace_of,
)
from saywhere.models.mitr.baseline import Baseline, caption, losses, trace
from saywhere.models.mitr.batch import collate_images
from saywhere.models.mitr.layers import shifted_boxes
from saywhere.models.mitr.skills import boxes_along
from tests.models.small import SMALL, batch, boxes_xyxy, generation, narratives, network, regions

TEXTS = ["In this image there is a dog.", "A red ball, on the sand.", "Behind them, a tree and another tree!"]
RNG = np.random.default_rng(0)
IMAGES = [regions(RNG, 4), regions(RNG, 6), regions(RNG, 3)]


def skilled(kind: str = "words", **changes: float) -> Skills:
    made = Vocabulary.of_words(TEXTS) if kind == "words" else Vocabulary.of_bpe(TEXTS, 40)
    return Skills(network(words=len(made), **changes).attach(made), generation(beams=2, max_words=12))


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_grounding_gives_a_box_for_every_word(kind: str) -> None:
    grounded = skilled(kind).ground(IMAGES, TEXTS)
    assert [one.text for one in grounded] == TEXTS
    for one, text in zip(grounded, TEXTS, strict=True):
        assert len(one.boxes) == len(text.split())
        assert one.boxes.located.all()


def test_a_word_of_several_pieces_has_the_mean_of_their_boxes() -> None:
    skills = skilled()
    pieces = skills.vocabulary.encode(["dog."])
    with torch.no_grad():
        memory = skills.model.encode_images(collate_images(IMAGES[:1]))
    boxes = decode.trace(skills.model, memory, torch.tensor([pieces.ids]), torch.tensor([2]))[0, :, :4].numpy()
    mean = boxes.mean(axis=0)
    corners = [min(mean[0], mean[2]), min(mean[1], mean[3]), max(mean[0], mean[2]), max(mean[1], mean[3])]
    joined = skills.ground(IMAGES[:1], [["dog."]])[0]
    np.testing.assert_allclose(joined.boxes.boxes_xyxy, [corners], atol=1e-5)
    assert len(skills.ground(IMAGES[:1], [["dog", "."]])[0].boxes) == 2


def test_a_word_unknown_to_the_vocabulary_is_grounded_too_and_white_space_is_not() -> None:
    one = skilled().ground(IMAGES[:1], ["a zebra"])[0]
    assert one.words == ("a", "zebra")
    assert one.boxes.located.all()
    with pytest.raises(InvalidValue, match="no word"):
        skilled().ground(IMAGES[:1], ["  "])


def test_captions_follow_the_trace() -> None:
    skills, rng = skilled(), np.random.default_rng(1)
    traces = [WordBoxes(boxes_xyxy(rng, n)) for n in (3, 8, 5)]
    said = skills.caption(IMAGES, traces)
    assert all(isinstance(text, str) and text for text in said)
    assert "<unk>" not in " ".join(said)
    alone = [skills.caption([image], [one])[0] for image, one in zip(IMAGES, traces, strict=True)]
    assert said == alone
    many = [skills.caption(IMAGES[:1], [WordBoxes(boxes_xyxy(rng, 8))])[0] for _ in range(8)]
    assert len(set(many)) > 1


def test_a_trace_without_words_is_cut_at_the_pace_of_speech() -> None:
    points = np.column_stack([np.linspace(0, 1, 50), np.linspace(0, 1, 50), np.linspace(0, 4, 50)])
    boxes = boxes_along(Trace(points))
    assert len(boxes) == 10
    assert boxes.located.all()
    np.testing.assert_allclose(boxes.boxes_xyxy[3, :2], [0.3, 0.3], atol=0.03)
    assert skilled().caption(IMAGES[:1], [Trace(points)]) == skilled().caption(IMAGES[:1], [boxes])
    with pytest.raises(InvalidValue, match="points nowhere"):
        skilled().caption(IMAGES[:1], [Trace(np.empty((0, 3)), ())])


@pytest.mark.parametrize("kind", ["words", "bpe"])
@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
def test_narrations_have_a_box_for_every_word(kind: str, method: str) -> None:
    said = skilled(kind).narrate(IMAGES, generation(method, beams=3, max_words=12))
    for one in said:
        assert len(one.words) == len(one.boxes)
        narrative = one.narrative("photo-1", "mitr")
        assert isinstance(narrative, Narrative)
        assert narrative.caption == one.text
        assert narrative.origin == "mitr"
        assert tuple(word.text for word in narrative.words) == one.words


def test_a_narrated_trace_runs_through_the_boxes() -> None:
    one = skilled().ground(IMAGES[:1], ["a red ball"])[0]
    narrative = one.narrative("photo-1", "mitr", words_per_s=2.0)
    assert narrative.end_s == pytest.approx(1.5, abs=0.05)
    back = narrative.word_boxes().boxes_xyxy
    assert (back[:, :2] <= one.boxes.boxes_xyxy[:, :2] + 1e-6).all()
    assert (back[:, 2:] >= one.boxes.boxes_xyxy[:, 2:] - 1e-6).all()


def test_sentences_are_finished_with_the_vocabularys_own_signs() -> None:
    said = skilled().narrate(IMAGES, generation(beams=3, max_words=12, finish_sentence=True))
    assert all(one.text.endswith((".", "!")) for one in said if set(one.text) & set(".!"))


def test_key_boxes_guide_a_caption() -> None:
    skills, rng = skilled(), np.random.default_rng(1)
    keys = [WordBoxes(boxes_xyxy(rng, 2)) for _ in IMAGES]
    said = skills.guided(IMAGES, keys, length=9)
    filled = [WordBoxes.decode(guided_boxes(one.boxes_xyxy, 9)) for one in keys]
    assert said == skills.caption(IMAGES, filled)


def test_a_model_with_an_eye_looks_at_photos() -> None:
    made = Vocabulary.of_words(TEXTS)
    config = MitrConfig(len(made), region_size=24, width=32, heads=4, feed_forward=48, photo_px=32)
    skills = Skills(MITR.fresh(config, 0).attach(made), generation(beams=2, max_words=5))
    photos = [RNG.integers(0, 256, (32, 32, 3), dtype=np.uint8) for _ in range(2)]
    assert len(skills.narrate(photos)) == 2
    with pytest.raises(InvalidValue, match="uint8"):
        skills.narrate([photos[0].astype(np.float32)])  # type: ignore[list-item]
    with pytest.raises(InvalidValue, match="mixes photos of sizes"):
        skills.narrate([photos[0], photos[1][:16]])


def test_skills_come_back_from_a_folder(tmp_path: Path) -> None:
    skills = skilled()
    skills.model.save_pretrained(tmp_path)
    again = Skills.from_pretrained(tmp_path)
    np.testing.assert_array_equal(
        again.ground(IMAGES, TEXTS)[1].boxes.boxes_xyxy, skills.ground(IMAGES, TEXTS)[1].boxes.boxes_xyxy
    )


def test_skills_need_a_vocabulary_and_one_text_for_each_image() -> None:
    with pytest.raises(InvalidValue, match="no vocabulary"):
        Skills(network())
    with pytest.raises(InvalidValue, match="1 for 3 images"):
        skilled().ground(IMAGES, TEXTS[:1])


# --- examples and batches


def test_each_piece_of_a_word_has_the_words_box() -> None:
    made = Vocabulary.of_words(TEXTS)
    boxes = WordBoxes([[0.1, 0.1, 0.3, 0.3], [np.nan] * 4])
    one = example(IMAGES[0], ["dog.", "there"], boxes, made)
    assert made.text(one.words.tolist()) == "dog. there"
    np.testing.assert_allclose(one.boxes, [[0.1, 0.1, 0.3, 0.3, 0.04]] * 2 + [[0, 0, 1, 1, 1]], atol=1e-6)
    assert one.located.tolist() == [True, True, False]


def test_a_narrative_becomes_an_example_by_the_alignment_rules() -> None:
    points = np.column_stack([[0.1, 0.2, 0.6, 0.7], [0.1, 0.3, 0.5, 0.9], [0.1, 0.4, 1.1, 1.4]])
    told = Narrative("7", "a dog", (Utterance("a", 0.0, 1.0), Utterance("dog", 1.0, 2.0)), Trace(points))
    one = example_of(IMAGES[0], told, Vocabulary.of_words(TEXTS))
    np.testing.assert_allclose(one.boxes[:, :4], [[0.1, 0.1, 0.2, 0.3], [0.6, 0.5, 0.7, 0.9]], atol=1e-6)
    assert one.name == "7"


def test_key_boxes_are_filled_up_with_the_whole_image_and_never_located() -> None:
    one = guided_example(IMAGES[0], TEXTS[0].split(), [[0.1, 0.1, 0.3, 0.3]], Vocabulary.of_words(TEXTS), 5)
    np.testing.assert_allclose(one.boxes, [[0.1, 0.1, 0.3, 0.3, 0.04]] + [[0, 0, 1, 1, 1]] * 4, atol=1e-6)
    assert not one.located.any()
    assert guided_boxes([[0.1, 0.1, 0.3, 0.3]] * 3, 2).shape == (2, 5)


@pytest.mark.parametrize("guided", [0, 2, 9, 12])
def test_a_caption_is_written_along_its_trace_or_along_as_many_key_boxes_as_any_other(guided: int) -> None:
    one = collate(narratives())
    boxes, count = trace_of(one, guided)
    if not guided:
        assert boxes is one.boxes
        assert count is one.lengths
        return
    assert boxes.shape == (3, guided, 5)
    assert count.tolist() == [guided] * 3
    for i, length in enumerate(one.lengths.tolist()):
        given = min(length, guided)
        assert torch.equal(boxes[i, :given], one.boxes[i, :given])
        assert boxes[i, given:].tolist() == [[0, 0, 1, 1, 1]] * (guided - given)


def test_batches_are_padded_to_the_longest() -> None:
    examples = narratives()
    one = collate(examples)
    assert one.words.shape == (3, 9)
    assert one.lengths.tolist() == [5, 9, 3]
    assert not one.words[2, 3:].any()
    assert not one.located[2, 3:].any()
    assert one.images.region_mask is not None
    assert one.images.region_mask.sum(dim=1).tolist() == [4, 7, 5]
    moved = one.to("cpu")
    assert torch.equal(moved.boxes, one.boxes)
    assert len(moved) == len(moved.images) == 3


def test_examples_and_batches_that_cannot_be_are_refused() -> None:
    made = Vocabulary.of_words(TEXTS)
    with pytest.raises(InvalidValue, match="has no words"):
        example(IMAGES[0], [], WordBoxes(np.empty((0, 4))), made)
    with pytest.raises(InvalidValue, match="1 boxes for 2 words"):
        example(IMAGES[0], ["a", "dog"], WordBoxes([[0, 0, 1, 1]]), made)
    with pytest.raises(InvalidValue, match="no image"):
        collate_images([])
    with pytest.raises(InvalidValue, match="mixes 1 images"):
        collate_images([IMAGES[0], np.zeros((16, 16, 3), dtype=np.uint8)])


# --- baselines


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("task", ["trace", "caption", "describe"])
def test_a_baseline_learns_its_task(task: str, layers: int) -> None:
    config = MitrConfig(**(SMALL.to_dict() | {"layers": layers, "input_dropout": 0.0}))  # type: ignore[arg-type]
    model, one = Baseline.fresh(config, task, 0), batch()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    generator, history = torch.Generator().manual_seed(0), []
    for _ in range(25):
        found = losses(model, one, generator)
        optimizer.zero_grad()
        found["loss"].backward()
        optimizer.step()
        history.append(found["loss"].item())
    assert history[-1] < 0.8 * history[0]
    assert set(found) == {"loss", "trace" if task == "trace" else "caption"}


@pytest.mark.parametrize("layers", [1, 2])
def test_a_baselines_cached_trace_is_its_uncached_one(layers: int) -> None:
    config = MitrConfig(**(SMALL.to_dict() | {"layers": layers}))  # type: ignore[arg-type]
    model, one = Baseline.fresh(config, "trace", 0).eval(), batch()
    with torch.no_grad():
        source = model.encode(one.images, one.words, one.boxes, one.lengths)
        slow = torch.zeros_like(one.boxes)
        for place in range(slow.shape[1]):
            box = model.decode(source, shifted_boxes(slow))[:, place]
            box[:, 4] = (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])
            slow[:, place] = box
    mask = padding_mask(one.lengths, slow.shape[1])[:, :, None]
    torch.testing.assert_close(trace(model, source, one.lengths), slow * mask, atol=1e-5, rtol=0)


@pytest.mark.parametrize("task", ["caption", "describe"])
def test_a_baselines_cached_caption_is_its_uncached_one(task: str) -> None:
    model, one = Baseline.fresh(SMALL, task, 0).eval(), batch()
    with torch.no_grad():
        source = model.encode(one.images, one.words, one.boxes, one.lengths)
        read = torch.ones(3, 1, dtype=torch.long)
        for _ in range(8):
            read = torch.cat([read, model.decode(source, read)[:, -1].argmax(-1, keepdim=True) + 2], dim=1)
    said = caption(model, source, generation("greedy", max_words=8))
    for text, slow in zip(said, read[:, 1:].tolist(), strict=True):
        assert list(text.tokens) == (slow[: slow.index(2)] if 2 in slow else slow)


def test_a_baseline_sees_what_its_task_gives_it() -> None:
    one = batch()
    for task, words, boxes in [("trace", True, False), ("caption", False, True), ("describe", False, False)]:
        model = Baseline.fresh(SMALL, task, 0).eval()
        with torch.no_grad():
            seen = model.encode(one.images, one.words, one.boxes, one.lengths).keys_values[0].keys
            other_words = (
                model.encode(one.images, (33 - one.words).clamp(3, 32), one.boxes, one.lengths).keys_values[0].keys
            )
            other_boxes = model.encode(one.images, one.words, 1 - one.boxes, one.lengths).keys_values[0].keys
        assert torch.equal(seen, other_words) is not words
        assert torch.equal(seen, other_boxes) is not boxes


def test_a_baseline_does_only_what_it_was_made_for() -> None:
    one = batch()
    pointing, speaking = Baseline.fresh(SMALL, "trace", 0), Baseline.fresh(SMALL, "caption", 0)
    source = speaking.encode(one.images, one.words, one.boxes, one.lengths)
    with pytest.raises(InvalidValue, match="does not speak"):
        caption(pointing, source, generation())
    with pytest.raises(InvalidValue, match="does not point"):
        trace(speaking, source, one.lengths)
    with pytest.raises(UnknownName, match="describe"):
        Baseline(SMALL, "narrate")
