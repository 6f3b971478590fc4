"""Every model here in the form that the laboratory reads: its attention is its own, and every analysis runs on it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from saywhere.core import Frame, InvalidValue
from saywhere.explain import (
    MitrAttending,
    PrefixAttending,
    UpDnCaptionAttending,
    UpDnVqaAttending,
    measure_blocks,
    pooled,
    pooled_many,
    special_attention,
    view_attention,
)
from saywhere.language.vocabulary import BEGIN_ID, Vocabulary
from saywhere.models.attended import Attended, Attending, TokenKind
from saywhere.models.mitr.layers import as_keys
from saywhere.models.tagged_regions import TaggedRegions
from saywhere.vision import View
from tests.explain.laboratory import image
from tests.models import patchioner_small, small, updown_small

P, S, C, R = TokenKind.PAD, TokenKind.SPECIAL, TokenKind.CAPTION, TokenKind.REGION
CAPTIONS = ["a red cat", "a dog", "a cup on a boat", "a cat"]


def _images(size: int) -> list[TaggedRegions]:
    return [
        image(["cat"], [0, 1, 2], seed=1, size=size),
        image([], [3, 4, 5, 6], seed=2, size=size).without(regions=[1]),
        image(["cup"], [], size=size),
        image(["dog", "cup"], [1], seed=3, size=size).without(regions=[0]),
    ]


def _words(count: int) -> Vocabulary:
    known = ["a", "red", "cat", "dog", "cup", "on", "boat", "what", "is", "there"]
    return Vocabulary("words", ("[UNK]", *known, *(f"w{i}" for i in range(count - 1 - len(known)))))


def _mitr() -> tuple[MitrAttending, int]:
    return MitrAttending(small.network(layers=2).attach(_words(small.WORDS))), small.REGION


def _vqa() -> tuple[UpDnVqaAttending, int]:
    model = updown_small.vqa(use_boxes=True)
    model.vocabulary = _words(updown_small.WORDS)
    return UpDnVqaAttending(model, "What is there?"), updown_small.REGION


def _captioner() -> tuple[UpDnCaptionAttending, int]:
    return UpDnCaptionAttending(updown_small.captioner().attach(_words(updown_small.WORDS))), updown_small.REGION


def _prefix() -> tuple[PrefixAttending, int]:
    return PrefixAttending(patchioner_small.decoder()), patchioner_small.SIZE


EVERY = pytest.mark.parametrize("made", [_mitr, _vqa, _captioner, _prefix])
WITH_WORDS = pytest.mark.parametrize("made", [_mitr, _captioner, _prefix])
Made = Callable[[], tuple[Attending, int]]


def _check(found: Attended, silent: tuple[TokenKind, ...]) -> None:
    """What `Attended` promises. silent: parts that ask nothing."""
    here = found.parts != P
    asks = here & ~torch.isin(found.parts, torch.tensor([int(part) for part in silent]))
    for layer in found.layers:
        assert layer.shape[0] == len(found.parts)
        assert layer.shape[2:] == (found.parts.shape[1],) * 2
        assert bool((layer >= 0).all())
        torch.testing.assert_close(layer.sum(dim=3), asks[:, None].expand(layer.shape[:3]).float())
        assert not bool((layer.sum(dim=2) * ~here[:, None]).any())
    assert found.states.shape[:2] == found.parts.shape
    assert not bool((found.states * ~here[:, :, None]).any())
    assert bool(found.states.isfinite().all())
    assert bool((found.index[found.parts != R] == -1).all())


@EVERY
def test_attention_of_what_is_there_sums_to_one_and_padding_has_none(made: Made) -> None:
    model, size = made()
    images = _images(size)
    found = model.attend(images)
    _check(found, () if isinstance(model, MitrAttending | PrefixAttending) else (R,))
    assert [bool((row != P).any()) for row in found.parts] == [True, True, False, False]
    if not isinstance(model, PrefixAttending):
        assert found.index[1][found.parts[1] == R].tolist() == [0, 2, 3]


@WITH_WORDS
def test_captions_take_the_places_of_their_words(made: Made) -> None:
    model, size = made()
    found = model.attend(_images(size), CAPTIONS)  # type: ignore[call-arg]
    _check(found, (R,) if isinstance(model, UpDnCaptionAttending) else ())
    words = [int((row == C).sum()) for row in found.parts]
    assert words == [3, 2, 0, 0]
    assert [int((row == S).sum()) for row in found.parts] == [1, 1, 0, 0]
    blocks = measure_blocks(model, ["0"], {"0": _images(size)[0]}.__getitem__, {"words": [(C, R)], "vision": [(S, R)]})
    assert blocks["words"].empty == 1


@EVERY
def test_an_image_is_seen_alone_as_among_others_and_whatever_the_network_was_doing(made: Made) -> None:
    model, size = made()
    network = model.decoder if isinstance(model, PrefixAttending) else model.model  # type: ignore[attr-defined]
    images = _images(size)
    together = model.attend(images)
    network.train()
    alone = model.attend(images[:1])
    assert network.training
    n = alone.parts.shape[1]
    places = (together.parts[0] != P).nonzero()[:, 0]
    assert len(places) == int((alone.parts[0] != P).sum()) == n
    for one, other in zip(alone.layers, together.layers, strict=True):
        torch.testing.assert_close(one[0], other[0][:, places][:, :, places], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(alone.states[0], together.states[0, places], rtol=1e-4, atol=1e-5)
    assert not alone.states.requires_grad


@EVERY
def test_a_region_that_is_padded_changes_nothing_that_is_seen(made: Made) -> None:
    model, size = made()
    whole = image(["cat"], [0, 1, 2], seed=1, size=size)
    changed = np.array(whole.features)
    changed[1] = 99.0
    other = TaggedRegions(changed, whole.boxes_xyxy, whole.tags, whole.tag_boxes_xyxy)
    one, two = (model.attend([seen.without(regions=[1])]) for seen in (whole, other))
    torch.testing.assert_close(one.layers[0], two.layers[0])
    torch.testing.assert_close(one.states, two.states)


@pytest.mark.parametrize(
    ("made", "relation"), [(_mitr, (R, R)), (_vqa, (S, R)), (_captioner, (S, R)), (_prefix, (S, R))]
)
def test_blocks_and_states_for_probes_are_had_of_every_model(made: Made, relation: tuple[TokenKind, TokenKind]) -> None:
    model, size = made()
    images = {str(i): one for i, one in enumerate(_images(size))}
    stats = measure_blocks(model, list(images), images.__getitem__, {"it": [relation]}, heads="mean", batch=3)["it"]
    assert stats.empty == 2
    rows = stats.rows[:2]
    assert (stats.mass[:2] > 0).all()
    if not isinstance(model, PrefixAttending):
        np.testing.assert_allclose(stats.mass[:2], rows, rtol=1e-5)
        assert ((stats.evenness[:2] > 0) & (stats.evenness[:2] <= 1)).all()
    states = pooled_many(model, list(images), images.__getitem__, over=TokenKind.REGION)
    assert np.isfinite(states).all(axis=1).tolist() == [True, True, False, False]
    assert not np.allclose(states[0], states[1])


def test_mitrs_attention_and_states_are_those_its_own_network_computes() -> None:
    model, size = _mitr()
    images = _images(size)[:1]
    found = model.attend(images, CAPTIONS[:1])
    network, seen = model.model, images[0]
    features, boxes = torch.from_numpy(np.array(seen.features))[None], torch.from_numpy(np.array(seen.boxes_xyxy))[None]
    area = ((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1]))[..., None]
    present = torch.ones(1, 3, dtype=torch.bool)
    hidden = network.hidden(features, torch.cat([boxes, area], dim=2), present)
    torch.testing.assert_close(found.states[:, 4:], hidden)
    # The first layer, put together from its shares, gives what the fused kernel gives.
    layer = network.encoder[0]
    x = layer.attention_norm(network.regions(features, torch.cat([boxes, area], dim=2)))  # type: ignore[operator,union-attr]
    values = layer.attention.split(layer.attention.value(x))  # type: ignore[operator,union-attr]
    mixed = (found.layers[0][:, :, 4:, 4:] @ values).transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer.attention.out(mixed), layer.attention(x, x, as_keys(present)))  # type: ignore[operator,union-attr]
    # Words before a change do not notice it: the stream is causal.
    other = model.attend(images, ["a red dog"])
    torch.testing.assert_close(other.layers[1][:, :, :3], found.layers[1][:, :, :3])
    assert not torch.allclose(other.layers[1][:, :, 3], found.layers[1][:, :, 3])


def test_updns_rows_are_where_the_network_says_it_looks() -> None:
    asks, size = _vqa()
    images = _images(size)[:2]
    features, present, boxes = updown_small.scene(counts=(3, 4))
    features[0, :3], features[1] = (torch.from_numpy(np.array(one.features)) for one in images)
    boxes[0, :3], boxes[1] = (torch.from_numpy(np.array(one.boxes_xyxy)) for one in images)
    present[1, 1] = False
    ids = torch.tensor([asks.model.vocabulary.encode(["what", "is", "there"]).ids] * 2)  # type: ignore[union-attr]
    expected = asks.model(features, present, ids, boxes=boxes).attention
    torch.testing.assert_close(asks.attend(images).layers[0][:, 0, 0, 1:], expected)
    speaks, _ = _captioner()
    words = torch.tensor([[BEGIN_ID, *speaks.model.vocabulary.encode(["a", "red", "cat"]).ids]] * 2)  # type: ignore[union-attr]
    looked = speaks.model(features, present, words).attention
    torch.testing.assert_close(speaks.attend(images, ["a red cat"] * 2).layers[0][:, 0, :4, 4:], looked)


def test_the_prefix_decoders_states_say_what_the_decoder_says() -> None:
    model, size = _prefix()
    decoder, images = model.decoder, _images(size)[:2]
    found = model.attend(images, CAPTIONS[:2])
    vectors = torch.from_numpy(np.stack([images[0].features.mean(axis=0), images[1].features[[0, 2, 3]].mean(axis=0)]))
    words = torch.tensor(
        [[BEGIN_ID, *decoder.vocabulary.encode(text.split()).ids] for text in ("a red cat", "a dog a")]
    )
    before = decoder.config.before_words
    scores = decoder(vectors, words)
    torch.testing.assert_close(decoder.say(found.states[0, before:]), scores[0])
    torch.testing.assert_close(decoder.say(found.states[1, before : before + 3]), scores[1, :3])
    assert found.parts[1].tolist() == [R, R, S, C, C, P]
    assert not bool(found.layers[0][0, 0].triu(1).any())
    given = PrefixAttending(decoder, lambda one: one.features[0])
    assert not torch.allclose(given.attend(images).states, model.attend(images).states)


def _views(attention: bool = True) -> list[View]:
    rng = np.random.default_rng(0)
    frame = Frame.of_grid(2, 3)
    return [
        View(frame, rng.random((2, 3, 5)), rng.random(5), rng.random((2, 3)) if attention else None) for _ in range(2)
    ]


def test_a_vision_encoders_class_token_asks_its_patches() -> None:
    views = _views()
    found = view_attention(views)
    _check(found, (R,))
    np.testing.assert_allclose(found.layers[0][1, 0, 0, 1:], np.ravel(views[1].attention))  # type: ignore[arg-type]
    np.testing.assert_allclose(pooled(found, TokenKind.SPECIAL), [view.whole for view in views])
    assert found.index[0].tolist() == [-1, 0, 1, 2, 3, 4, 5]
    assert np.isnan(special_attention(found).share).all()


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (lambda: view_attention([]), "there is none"),
        (lambda: view_attention(_views(attention=False)), "number 0 has no attention"),
        (
            lambda: view_attention([*_views(), View(Frame.of_grid(1, 1), np.ones((1, 1, 5)), np.ones(5), [[1]])]),
            "differ",
        ),
        (lambda: _mitr()[0].attend([]), "there is none"),
        (lambda: _mitr()[0].attend(_images(3)), "features of size 3"),
        (lambda: _mitr()[0].attend(_images(small.REGION), ["a"]), "1 for 4 images"),
        (lambda: MitrAttending(small.network()).attend(_images(small.REGION), CAPTIONS), "attach a vocabulary"),
        (lambda: UpDnVqaAttending(_vqa()[0].model, "?").attend(_images(updown_small.REGION)), "has no word"),
        (lambda: PrefixAttending(patchioner_small.decoder(extra_size=2)).attend([]), "second vector"),
        (lambda: _prefix()[0].attend([]), "there is none"),
        (lambda: _prefix()[0].attend(_images(3)), "3 numbers for a decoder that reads 12"),
    ],
)
def test_bad_requests_are_named(ask, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidValue, match=reason):
        ask()
