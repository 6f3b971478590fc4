"""What is pointed at, cut out of a photo: MobileSAM (Zhang et al. 2023), TinyViT with SAM's prompts and masks.

    segmenter = open_segmenter()
    seen = segmenter.look("kitchen.jpg")                    # heavy, once
    seen.masks([Box(0.1, 0.2, 0.4, 0.6), Point(0.5, 0.5)])  # cheap, often

How a region becomes a prompt:

    box, polygon, mask   the box around it; a set of boxes is cut out box by box
    point                itself; of SAM's three masks, the one that SAM gives the highest score
    trace                both the box around it, as if it went round the thing, and points along it, as if it went
                         across; the one with the higher score is kept
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from saywhere.assets import MOBILE_SAM, cache_folder, find, verify
from saywhere.assets.checkpoint import read_tensors
from saywhere.core import BoxSet, Frame, InvalidFile, InvalidValue, Mask, Point, Region, Trace
from saywhere.core.types import Bools, Floats
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.runtime import Runtime, open_runtime
from saywhere.vision.sam import load_sam, sam_network
from saywhere.vision.tiny_vit import STRIDE, TinyViT, TinyVitConfig

INPUT_PX = 1024
_ENCODER = "image_encoder."
_TRACE_POINTS = 8
_AT_ONCE = 4
"""Prompts that go through the decoder together; more of them do not fit the processor's cache."""
_LEAST_SIDE = 1e-6


@dataclass(frozen=True, slots=True)
class MaskPrompt:
    """What SAM is told. points_xy: that are on the thing. box_xyxy: around it. In fractions of the photo."""

    points_xy: tuple[tuple[float, float], ...] = ()
    box_xyxy: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CutOut:
    """inside: (h, w), the photo's own pixels. score: the IoU that SAM expects of it. prompts: what SAM was told."""

    inside: Bools
    score: float
    prompts: tuple[MaskPrompt, ...]

    @property
    def mask(self) -> Mask:
        if not self.inside.any():
            raise InvalidValue("mask", "is empty: nothing was found there to cut out", "point at something else")
        return Mask(self.inside)


class SegmenterView:
    """One photo as a segmenter saw it. features: (1, d, rows, cols)."""

    def __init__(self, segmenter: Segmenter, frame: Frame, features: Tensor) -> None:
        self.segmenter, self.frame, self.features = segmenter, frame, features

    def masks(self, regions: Sequence[Region]) -> list[Mask]:
        """What each region means, in the photo's own pixels."""
        return [found.mask for found in self.cut_outs(regions)]

    def cut_outs(self, regions: Sequence[Region]) -> list[CutOut]:
        """The same with scores; a mask may be empty. The same, but for rounding, alone and among others."""
        asked = [prompts_of(region) for region in regions]
        prompts = [prompt for some in asked for prompt in some]
        answers = dict(zip(range(len(prompts)), self._decoded(prompts), strict=True))
        found, start = [], 0
        for region, some in zip(regions, asked, strict=True):
            numbers = range(start, start + len(some))
            start += len(some)
            # Of several readings of one region the best is kept; several boxes are meant together.
            kept = numbers if isinstance(region, BoxSet) else [max(numbers, key=lambda n: answers[n][1])]
            inside = np.any([self._inside(answers[n][0]) for n in kept], axis=0)
            score = float(np.mean([answers[n][1] for n in kept]))
            found.append(CutOut(inside, score, tuple(prompts[n] for n in kept)))
        return found

    def _decoded(self, prompts: Sequence[MaskPrompt]) -> list[tuple[Tensor, float]]:
        """The logits (h, w) of each prompt's best mask, at a quarter of the input's resolution, and its score."""
        alike: dict[tuple[int, bool], list[int]] = defaultdict(list)
        for number, prompt in enumerate(prompts):
            alike[len(prompt.points_xy), prompt.box_xyxy is not None].append(number)
        answers: dict[int, tuple[Tensor, float]] = {}
        for numbers in alike.values():
            for start in range(0, len(numbers), _AT_ONCE):
                part = numbers[start : start + _AT_ONCE]
                answers |= zip(part, self._decoded_alike([prompts[n] for n in part]), strict=True)
        return [answers[number] for number in range(len(prompts))]

    def _decoded_alike(self, prompts: Sequence[MaskPrompt]) -> list[tuple[Tensor, float]]:
        """Of prompts that have as many points each, and all a box or none."""
        told: dict[str, Any] = {}
        if prompts[0].points_xy:
            told["input_points"] = torch.stack([self._px(prompt.points_xy) for prompt in prompts])[None]
        if prompts[0].box_xyxy is not None:
            boxes = [np.reshape(prompt.box_xyxy or (), (2, 2)) for prompt in prompts]
            told["input_boxes"] = torch.stack([self._px(box).flatten() for box in boxes])[None]
        # A single point may mean a thing, a part of it or what it is part of: SAM gives one mask for each.
        several = len(prompts[0].points_xy) == 1 and prompts[0].box_xyxy is None
        with torch.inference_mode():
            given = self.segmenter.sam(image_embeddings=self.features, multimask_output=several, **told)
        best = given.iou_scores[0].argmax(dim=-1).tolist()
        return [
            (given.pred_masks[0, number, one], float(given.iou_scores[0, number, one]))
            for number, one in enumerate(best)
        ]

    def _px(self, points_xy: Any) -> Tensor:
        return torch.from_numpy(self.frame.to_input(points_xy)).float()

    def _inside(self, logits: Tensor) -> Bools:
        """From the decoder's resolution to the photo's, by way of the input's."""
        width, height = self.frame.span
        on_input = functional.interpolate(logits[None, None], self.frame.input_size[::-1], mode="bilinear")
        on_photo = functional.interpolate(on_input[..., :height, :width], self.frame.photo_size[::-1], mode="bilinear")
        inside: Bools = (on_photo[0, 0] > 0).numpy()
        return inside


class Segmenter:
    """Cuts things out of photos.

    run: (1, input_px, input_px, 4) 8-bit RGB with alpha → the map of `TinyViT`; see `saywhere.vision.runtime`.
    sam: see `sam_network`. sha256: of the weights, for the record.
    """

    def __init__(self, run: Runtime, sam: nn.Module, input_px: int = INPUT_PX, sha256: str = "") -> None:
        self.run, self.sam, self.input_px, self.sha256 = run, sam, input_px, sha256

    @property
    def fingerprint(self) -> dict[str, str | int]:
        return {"segmenter": MOBILE_SAM, "weights_sha256": self.sha256, "input_px": self.input_px}

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        """How a photo of this width and height becomes the input: in proportion, at the top left."""
        side = self.input_px
        whole = Frame.letterbox(photo_size, (side, side), STRIDE)
        return Frame(whole.photo_size, whole.input_size, whole.grid, whole.span, (0, 0))

    def look(self, photo: PhotoLike) -> SegmenterView:
        """One photo."""
        image = read_photo(photo)
        frame = self.frame(image.size)
        [features] = self.run(self._pixels(image, frame))
        return SegmenterView(self, frame, torch.from_numpy(features))

    def _pixels(self, image: Image.Image, frame: Frame) -> NDArray[np.uint8]:
        square = Image.new("RGBA", frame.input_size)
        square.paste(image.resize(frame.span, Image.Resampling.BILINEAR), frame.offset)
        return np.array(square)[None]


def prompts_of(region: Region) -> list[MaskPrompt]:
    """What SAM is told of a region; of several prompts, see `SegmenterView.cut_outs`.

    >>> from saywhere.core import Box
    >>> prompts_of(Point(0.5, 0.25))
    [MaskPrompt(points_xy=((0.5, 0.25),), box_xyxy=None)]
    >>> prompts_of(Box(-0.1, 0.2, 0.4, 0.6))
    [MaskPrompt(points_xy=(), box_xyxy=(0.0, 0.2, 0.4, 0.6))]
    """
    if isinstance(region, Point):
        return [_points_prompt(np.array([[region.x, region.y]]), region)]
    if isinstance(region, Trace):
        return _trace_prompts(region)
    if isinstance(region, BoxSet):
        return [prompt for box in region.boxes for prompt in prompts_of(box)]
    outlines = region.outlines()
    if not outlines:
        raise InvalidValue(region.name, "marks no thing that could be cut out", "give a box, a point or a trace")
    around = _around(np.concatenate(outlines))
    if around is None:
        raise InvalidValue(region.name, "covers nothing of the photo")
    return [MaskPrompt(box_xyxy=around)]


def _trace_prompts(trace: Trace) -> list[MaskPrompt]:
    on_photo = trace.xy[((trace.xy >= 0) & (trace.xy <= 1)).all(axis=1)]
    prompt = _points_prompt(_along(on_photo) if len(on_photo) else on_photo, trace)
    around = _around(on_photo)
    return [prompt] if around is None else [prompt, MaskPrompt(box_xyxy=around)]


def _along(points_xy: Floats) -> Floats:
    """Points at even steps of the way, the first and the last among them; one where nothing moves."""
    way = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(points_xy, axis=0), axis=1)))
    if way[-1] <= _LEAST_SIDE:
        return points_xy[:1]
    steps = np.linspace(0, way[-1], _TRACE_POINTS)
    return np.column_stack([np.interp(steps, way, points_xy[:, axis]) for axis in range(2)])


def _points_prompt(points_xy: Floats, region: Region) -> MaskPrompt:
    if not len(points_xy) or not ((points_xy >= 0) & (points_xy <= 1)).all():
        raise InvalidValue(region.name, "lies outside the photo", "positions are fractions of its width and height")
    return MaskPrompt(points_xy=tuple((float(x), float(y)) for x, y in points_xy))


def _around(points_xy: Floats) -> tuple[float, float, float, float] | None:
    """The box around points, cut at the photo's edges; None if it has no area."""
    if not len(points_xy):
        return None
    left, top, right, bottom = np.clip([*points_xy.min(axis=0), *points_xy.max(axis=0)], 0, 1).tolist()
    return (left, top, right, bottom) if min(right - left, bottom - top) > _LEAST_SIDE else None


def open_segmenter(kind: str = "") -> Segmenter:
    """MobileSAM, whose weights must be in the cache: `saywhere assets fetch mobile-sam`. kind: of runtime, see
    `saywhere.vision.runtime`."""
    path = verify(MOBILE_SAM) / find(MOBILE_SAM).files[0].name
    released = read_tensors(path)
    sha256 = find(MOBILE_SAM).files[0].stored_sha256
    config = TinyVitConfig()
    sam = sam_network(INPUT_PX, config.out)

    def encoder() -> TinyViT:
        network = TinyViT(config)
        network.load_released({k.removeprefix(_ENCODER): v for k, v in released.items() if k.startswith(_ENCODER)})
        return network.fold()

    try:
        load_sam(sam, released)
        example = torch.zeros(1, INPUT_PX, INPUT_PX, 4, dtype=torch.uint8)
        run = open_runtime(encoder, f"{MOBILE_SAM} {sha256} {config}", example, cache_folder() / "compiled", kind)
    except InvalidValue as error:
        raise InvalidFile(path, error.reason, error.hint) from error
    return Segmenter(run, sam, INPUT_PX, sha256)
