"""What each place of each task can see, and what it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from saywhere.core import InvalidValue, UnknownName
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr import MITR, Batch, Images, MitrConfig, collate
from saywhere.models.mitr.image import PatchEncoder, grid_boxes
from saywhere.models.mitr.layers import shifted_boxes, shifted_words
from tests.models.small import SMALL, batch, narratives, network


def outputs(model: MITR, one: Batch) -> dict[str, Tensor]:
    """What every task gives, place by place."""
    read, _ = shifted_words(one.words, one.lengths)
    real = padding_mask(one.lengths + 1, read.shape[1])
    with torch.no_grad():
        memory = model.encode_images(one.images)
        logits, boxes = model.joint(memory, read, functional.pad(one.boxes, (0, 0, 1, 0)), real)
        return {
            "caption": model.caption(memory, read, real, one.boxes, real[:, 1:]),
            "trace": model.ground(memory, one.words, real[:, 1:], shifted_boxes(one.boxes)),
            "joint words": logits,
            "joint boxes": boxes,
        }


def changed(one: Batch, at: int, what: str) -> Batch:
    """The batch with one word or box replaced at a place of its longest narrative."""
    words, boxes = one.words.clone(), one.boxes.clone()
    if what == "word":
        words[1, at] = 3 + (words[1, at] - 2) % 30
    else:
        boxes[1, at] = 1 - boxes[1, at]
    return replace(one, words=words, boxes=boxes)


# For each task: the first place (0-based) that a change of the word or box number `at` may reach; None: all of them.
REACH: list[tuple[str, str, Callable[[int], int] | None]] = [
    ("caption", "word", lambda at: at + 1),
    ("caption", "box", None),
    ("trace", "word", None),
    ("trace", "box", lambda at: at + 1),
    ("joint words", "word", lambda at: at + 1),
    ("joint words", "box", lambda at: at + 1),
    ("joint boxes", "word", lambda at: at + 1),
    ("joint boxes", "box", lambda at: at + 1),
]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(("task", "what", "first"), REACH)
def test_a_place_sees_what_its_task_allows(
    layers: int, task: str, what: str, first: Callable[[int], int] | None
) -> None:
    model, one, at = network(layers=layers), batch(), 4
    before, after = (outputs(model, b)[task][1] for b in (one, changed(one, at, what)))
    moved = (before - after).abs().amax(dim=-1) > 1e-6
    expected = torch.arange(len(moved)) >= (0 if first is None else first(at))
    assert torch.equal(moved, expected)


def test_neighbours_and_padding_change_nothing() -> None:
    model, examples = network(layers=2), narratives()
    together = outputs(model, collate(examples))
    for i, example in enumerate(examples):
        for task, alone in outputs(model, collate([example])).items():
            torch.testing.assert_close(together[task][i, : alone.shape[1]], alone[0], atol=1e-5, rtol=0)


def test_another_image_gives_other_answers() -> None:
    model, one = network(), batch()
    other = replace(one, images=batch(seed=1).images)
    here, there = outputs(model, one), outputs(model, other)
    assert all((here[task] - there[task]).abs().max() > 1e-3 for task in here)


def test_a_network_depends_on_its_seed_alone() -> None:
    state = torch.get_rng_state()
    a, b, c = MITR.fresh(SMALL, 1), MITR.fresh(SMALL, 1), MITR.fresh(SMALL, 2)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))
    assert not torch.equal(a.say.weight, c.say.weight)


def test_matrices_inside_the_transformer_start_xavier_uniform() -> None:
    weight = MITR.fresh(MitrConfig(500, width=64, feed_forward=128), 0).caption_fusion.feed.fc1.weight
    bound = (6 / (64 + 128)) ** 0.5
    assert 0.98 * bound < weight.abs().max() <= bound


def test_positions_beyond_the_table_are_the_same_as_in_a_longer_one() -> None:
    model = network()
    late = model.words.positions(1000, 3)
    angle = 1001 / 10000 ** (torch.arange(0, 32, 2).double() / 32)
    torch.testing.assert_close(late[1, 0::2].double(), angle.sin(), atol=1e-4, rtol=0)
    torch.testing.assert_close(late[1, 1::2].double(), angle.cos(), atol=1e-4, rtol=0)


@pytest.mark.parametrize(("photo_px", "patches"), [(16, 64), (64, 64), (128, 64)])
def test_the_eye_gives_a_feature_and_a_box_for_each_patch(photo_px: int, patches: int) -> None:
    eye = PatchEncoder(20, photo_px)
    assert eye(torch.rand(2, 3, photo_px, photo_px)).shape == (2, patches, 20)
    corners, area = eye.boxes[0, :, :4], eye.boxes[0, :, 4]
    torch.testing.assert_close((corners[:, 2:] - corners[:, :2]).prod(dim=1), area)
    torch.testing.assert_close(area.sum(), torch.tensor(1.0))


def test_patches_and_their_boxes_are_in_the_same_order() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        eye = PatchEncoder(32, 64)
    photo = torch.zeros(1, 3, 64, 64)
    photo[:, :, 16:24, 40:48] = 1
    with torch.no_grad():
        lit = int((eye(photo) - eye(torch.zeros_like(photo))).abs().sum(dim=-1).argmax())
    x1, y1, x2, y2, _ = grid_boxes(8, 8)[lit].tolist()
    # The patch itself or the one beside it, as filters reach a little further than their patch.
    assert abs((x1 + x2) / 2 - 44 / 64) <= 1 / 8
    assert abs((y1 + y2) / 2 - 20 / 64) <= 1 / 8


def test_photos_and_their_patches_give_the_same_memory() -> None:
    model = MITR.fresh(MitrConfig(30, region_size=24, width=32, heads=4, feed_forward=48, photo_px=32), 0).eval()
    photos = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, 3, 32, 32), dtype=np.uint8))
    assert model.eye is not None
    with torch.no_grad():
        seen = model.eye(photos.float() / 255)
        given = Images(None, seen, grid_boxes(8, 8).expand(2, -1, -1), torch.ones(2, 64, dtype=torch.bool))
        a, b = model.encode_images(Images(photos=photos)), model.encode_images(given)
    torch.testing.assert_close(a.words[0].keys, b.words[0].keys)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"words": 0}, "not a positive"),
        ({"width": 30}, "does not divide"),
        ({"width": 5, "heads": 5}, "is odd"),
        ({"dropout": 1.0}, "not in"),
        ({"photo_px": 20}, "not a multiple"),
    ],
)
def test_configs_that_cannot_be_are_refused(change: dict[str, float], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        MitrConfig(**(SMALL.to_dict() | change))  # type: ignore[arg-type]


def test_configs_from_files_are_checked() -> None:
    assert MitrConfig.from_dict(SMALL.to_dict()) == SMALL
    with pytest.raises(UnknownName, match="widht"):
        MitrConfig.from_dict({"words": 3, "widht": 8})
    with pytest.raises(InvalidValue, match="whole number"):
        MitrConfig.from_dict(SMALL.to_dict() | {"words": 3.5})
    with pytest.raises(InvalidValue, match="does not say words"):
        MitrConfig.from_dict({"width": 8})


def test_images_that_the_network_cannot_read_are_refused() -> None:
    model = network()
    with pytest.raises(InvalidValue, match="no eye"):
        model.encode_images(Images(photos=torch.zeros(1, 3, 16, 16, dtype=torch.uint8)))
    with pytest.raises(InvalidValue, match="have 7 numbers each"):
        model.encode_images(Images(None, torch.zeros(1, 2, 7), torch.zeros(1, 2, 5), torch.ones(1, 2)))
    with pytest.raises(InvalidValue, match="neither photos nor regions"):
        model.encode_images(Images())
    with pytest.raises(InvalidValue, match="8 times a power of two"):
        PatchEncoder(8, 48)
    with pytest.raises(InvalidValue, match="have shape"):
        PatchEncoder(8, 32)(torch.zeros(1, 3, 16, 16))
