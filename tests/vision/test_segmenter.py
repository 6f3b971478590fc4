from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from saywhere.assets import MOBILE_SAM, AssetUnavailable, is_cached
from saywhere.core import Box, BoxSet, InvalidValue, Mask, Patch, Point, Polygon, Region, Trace, WholeImage
from saywhere.formats import coco_instances
from saywhere.formats.coco_instances import Instance
from saywhere.metrics import mask_iou
from saywhere.vision.sam import load_sam
from saywhere.vision.segmenter import CutOut, MaskPrompt, Segmenter, open_segmenter, prompts_of
from tests.vision.small_sam import sam, small_segmenter

LINE = Trace([(0.1, 0.5, 0.0), (0.9, 0.5, 1.0)])
RING = Trace([(0.2, 0.2, 0.0), (0.6, 0.2, 0.5), (0.6, 0.8, 1.0), (0.2, 0.8, 1.5)])


@pytest.fixture(scope="module")
def segmenter() -> Segmenter:
    return small_segmenter()


def photo(width: int = 50, height: int = 30, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("region", "prompts"),
    [
        (Box(0.1, 0.2, 0.3, 0.4), [MaskPrompt(box_xyxy=(0.1, 0.2, 0.3, 0.4))]),
        (Box(-0.5, 0.2, 0.3, 1.4), [MaskPrompt(box_xyxy=(0.0, 0.2, 0.3, 1.0))]),
        (Point(0.5, 1.0), [MaskPrompt(points_xy=((0.5, 1.0),))]),
        (Polygon([(0.1, 0.1), (0.5, 0.2), (0.2, 0.9)]), [MaskPrompt(box_xyxy=(0.1, 0.1, 0.5, 0.9))]),
        (Mask([[0, 0], [0, 1]]), [MaskPrompt(box_xyxy=(0.5, 0.5, 1.0, 1.0))]),
        (
            BoxSet([Box(0, 0, 0.1, 0.1), Box(0.5, 0.5, 1, 1)]),
            [MaskPrompt(box_xyxy=(0.0, 0.0, 0.1, 0.1)), MaskPrompt(box_xyxy=(0.5, 0.5, 1.0, 1.0))],
        ),
        (Trace([(0.3, 0.4, 0.0)]), [MaskPrompt(points_xy=((0.3, 0.4),))]),
        (Trace([(0.3, 0.4, 0.0), (0.3, 0.4, 1.0)]), [MaskPrompt(points_xy=((0.3, 0.4),))]),
    ],
)
def test_a_region_becomes_what_sam_is_told(region: Region, prompts: list[MaskPrompt]) -> None:
    assert prompts_of(region) == prompts


def test_a_trace_is_read_as_going_across_and_as_going_round() -> None:
    [across] = prompts_of(LINE)  # a straight line goes round nothing
    assert across.box_xyxy is None
    np.testing.assert_allclose(across.points_xy, [(x, 0.5) for x in np.linspace(0.1, 0.9, 8)])
    points, around = prompts_of(RING)
    assert around == MaskPrompt(box_xyxy=(0.2, 0.2, 0.6, 0.8))
    assert len(points.points_xy) == 8
    strayed = Trace([*RING.points.tolist(), (1.4, 0.5, 2.0)])
    assert prompts_of(strayed)[1] == around


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (WholeImage(), "whole photo.*marks no thing"),
        (Patch(0, 0), "marks no thing"),
        (Point(1.2, 0.5), "outside the photo"),
        (Box(1.1, 0, 1.5, 1), "covers nothing of the photo"),
        (Trace([(-1, 0.5, 0.0), (2, 0.5, 1.0)]), "outside the photo"),
        (Trace(np.empty((0, 3))), "outside the photo"),
    ],
)
def test_what_marks_nothing_is_refused(region: Region, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        prompts_of(region)


def test_masks_have_the_photos_own_pixels_alone_and_among_others(segmenter: Segmenter) -> None:
    seen = segmenter.look(photo(50, 30))
    assert (seen.frame.span, seen.frame.offset) == ((64, 38), (0, 0))
    regions: list[Region] = [Box(0, 0, 0.5, 0.5), Point(0.5, 0.5), LINE, RING, *[Box(0.2, 0, 0.9, 0.7)] * 9]
    together = seen.cut_outs(regions)
    for region, one in zip(regions, together, strict=True):
        [alone] = seen.cut_outs([region])
        assert one.inside.shape == (30, 50)
        assert one.inside.dtype == bool
        assert np.mean(alone.inside != one.inside) < 0.01
        assert alone.score == pytest.approx(one.score, abs=1e-4)
        assert alone.prompts == one.prompts


def test_the_same_photo_gives_the_same_masks_and_another_others(segmenter: Segmenter) -> None:
    first, again, other = (segmenter.look(photo(seed=seed)) for seed in (1, 1, 2))
    assert torch.equal(first.features, again.features)
    assert not torch.allclose(first.features, other.features)


def test_several_boxes_are_one_mask_and_of_two_readings_the_surer_is_kept(segmenter: Segmenter) -> None:
    seen = segmenter.look(photo())
    boxes = [Box(0, 0, 0.4, 0.9), Box(0.5, 0.1, 1, 1)]
    one, other, both = seen.cut_outs([*boxes, BoxSet(boxes)])
    np.testing.assert_array_equal(both.inside, one.inside | other.inside)
    assert both.score == pytest.approx((one.score + other.score) / 2, abs=1e-5)
    [drawn] = seen.cut_outs([RING])
    readings = [float(score) for _, score in seen._decoded(prompts_of(RING))]
    assert drawn.score == pytest.approx(max(readings))
    assert drawn.prompts == (prompts_of(RING)[int(np.argmax(readings))],)


def test_an_empty_mask_is_refused_with_a_reason() -> None:
    nothing = CutOut(np.zeros((2, 2), dtype=bool), 0.1, ())
    with pytest.raises(InvalidValue, match="nothing was found there to cut out"):
        nothing.mask  # noqa: B018 - it raises
    assert CutOut(np.eye(2, dtype=bool), 0.1, ()).mask.values.sum() == 2


def test_logits_are_laid_over_the_photo_without_the_padding(segmenter: Segmenter) -> None:
    seen = segmenter.look(photo(64, 32))
    logits = torch.full((16, 16), -1.0)
    logits[:8, :8] = 1.0  # of the input's upper half, which the photo fills, the left
    logits[8:] = 5.0  # padding
    inside = seen._inside(logits)
    assert inside.shape == (32, 64)
    assert inside[:28, :30].all()
    assert not inside[:28, 34:].any()


def test_sams_weights_must_fit() -> None:
    network = sam()
    with pytest.raises(InvalidValue, match="tensors are missing or too many"):
        load_sam(network, {"mask_decoder.iou_token.weight": torch.zeros(1, 16)})


def test_without_the_asset_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYWHERE_CACHE", str(tmp_path))
    with pytest.raises(AssetUnavailable, match="saywhere assets fetch mobile-sam"):
        open_segmenter()


@pytest.mark.skipif(not is_cached(MOBILE_SAM), reason="needs the asset mobile-sam")
def test_the_released_weights_cut_better_than_boxes(shared: Callable[[str], Path]) -> None:
    photos = shared("data/coco_val/photos")
    found = coco_instances.read(shared("data/coco_val/instances_subset.json"))
    things = [one for one in found if isinstance(one, Instance) and isinstance(one.segmentation, tuple)]
    of_first = [one for one in things if one.image_id == things[0].image_id][:6]
    seen = open_segmenter("torch").look(photos / f"{int(things[0].image_id):012d}.webp")
    width, height = seen.frame.photo_size
    truths = [one.mask(height, width) for one in of_first]
    cut = seen.cut_outs([Box(*one.box_xyxy) for one in of_first])
    boxes = [
        Mask(Box(*one.box_xyxy).weights(type(seen.frame).of_grid(height, width)) > 0).values > 0 for one in of_first
    ]
    ious = [mask_iou(one.inside, truth) for one, truth in zip(cut, truths, strict=True)]
    assert np.mean(ious) > np.mean([mask_iou(box, truth) for box, truth in zip(boxes, truths, strict=True)])
    assert np.mean(ious) > 0.6
