"""How photos and talks become what the small body reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saywhere.core import Box, Frame, InvalidValue
from saywhere.core.types import Floats32
from saywhere.models.eye.encoder import open_eye
from saywhere.models.tracevlm.coordinates import Coordinates
from saywhere.models.tracevlm.examples import ASSISTANT, USER, Exchange, Part
from saywhere.models.tracevlm.prompts import PromptReader
from saywhere.models.tracevlm.qwen import TRAJECTORY_TOKENS
from saywhere.models.tracevlm.small_config import SmallConfig
from saywhere.models.tracevlm.small_photos import LEAST_SCORE, WINDOWS, PhotoFeatures, of_things, window_states
from saywhere.models.tracevlm.small_tokens import (
    ASSISTANT_TURN,
    BOX,
    END,
    IMAGE,
    PADDING,
    USER_TURN,
    SmallTokenizer,
)
from saywhere.models.tracevlm.trajectory import Trajectory
from saywhere.vision.detector import Detector, open_detector
from saywhere.vision.eye import EyeEncoder
from saywhere.vision.view import View

BESIDE = 7
"""Numbers of a place beside its state: its box, the detector's score, the number of its class and of its kind."""
WHOLE, WINDOW, THING = range(3)
"""Kinds of places."""
READ_POINTS = 24
"""Of a trajectory as text; perception sees all of its points."""


class EyeAndDetector:
    """The eye and the detector of saywhere-base, opened when the first photo is looked at."""

    @cached_property
    def _opened(self) -> tuple[EyeEncoder, Detector]:
        return open_eye(), open_detector()

    def look(self, photo: Image.Image) -> View:
        """What the eye sees of a photo, and the things that the detector finds."""
        eye, detector = self._opened
        seen = detector.find(photo, LEAST_SCORE)
        return eye.look(photo).with_found(seen.found, seen.proposals)


class SmallInput:
    """How the small body reads: its tokenizer, and photos through the eye of saywhere-base."""

    merge = 1

    def __init__(self, config: SmallConfig, tokenizer: SmallTokenizer) -> None:
        self.config, self.tokenizer, self.special = config, tokenizer, tokenizer.special
        self.context = config.context
        self._eyes = EyeAndDetector()

    @property
    def padding(self) -> int:
        return self.special[PADDING]

    def prepare(self, photos: Sequence[Image.Image]) -> tuple[Tensor, Tensor]:
        """Places of all photos, and (m, 3) their grids; see `places`."""
        return self.places([photo_features(self.look(photo)) for photo in photos])

    def look(self, photo: Image.Image) -> View:
        """What the eye sees of a photo, and the things that the detector finds."""
        return self._eyes.look(photo)

    def places(self, photos: Sequence[PhotoFeatures]) -> tuple[Tensor, Tensor]:
        """(m, places, state_size + 7) of the whole, of windows and of things, padded; and (m, 3) 1, places and 1."""
        rows = [_places(photo, self.config.windows) for photo in photos]
        block = np.zeros((len(rows), max(map(len, rows)), self.config.state_size + BESIDE), np.float32)
        for place, row in zip(block, rows, strict=True):
            place[: len(row)] = row
        return torch.from_numpy(block), torch.tensor([[1, len(row), 1] for row in rows])

    def token_counts(self, grids: Tensor) -> list[int]:
        """How many tokens each image of (m, 3) grids takes."""
        counts: list[int] = grids.prod(dim=1).tolist()
        return counts


def photo_features(view: View) -> PhotoFeatures:
    """What the small body reads of a view."""
    if view.states is None:
        raise InvalidValue("view", "has no hidden states", "look at the photo again, with an eye that gives them")
    return of_things(window_states(view.states), view.found)


def _places(photo: PhotoFeatures, windows: int) -> Floats32:
    """(places, state_size + 7)."""
    size = photo.windows.shape[1]
    cut = photo.windows[1:].reshape(windows, WINDOWS // windows, windows, WINDOWS // windows, size).mean(axis=(1, 3))
    steps = np.linspace(0, 1, windows + 1)
    edges = [(steps[c], steps[r], steps[c + 1], steps[r + 1]) for r in range(windows) for c in range(windows)]
    shown = _shares(photo.boxes) @ photo.windows[1:]
    beside = np.zeros((1 + len(edges) + len(photo.boxes), BESIDE), np.float32)
    things = slice(1 + len(edges), None)
    beside[0, :4] = (0, 0, 1, 1)
    beside[1 : 1 + len(edges), :4], beside[1 : 1 + len(edges), 6] = edges, WINDOW
    beside[things, :4], beside[things, 4], beside[things, 6] = photo.boxes, photo.scores, THING
    beside[things, 5] = 1 + photo.classes
    states = np.concatenate([photo.windows[:1], cut.reshape(-1, size), shown])
    placed: Floats32 = np.concatenate([states, beside], axis=1).astype(np.float32)
    return placed


def _shares(boxes_xyxy: Floats32) -> Floats32:
    """(t, 100) how much of each box lies in each window; rows sum to 1."""
    edges = np.linspace(0, 1, WINDOWS + 1)
    low = np.maximum(boxes_xyxy[:, :2, None], edges[:-1])
    sides = np.clip(np.minimum(boxes_xyxy[:, 2:, None], edges[1:]) - low, 0, 1)
    inside = (sides[:, 1, :, None] * sides[:, 0, None, :]).reshape(len(boxes_xyxy), WINDOWS**2)
    shares: Floats32 = (inside / np.maximum(inside.sum(axis=1, keepdims=True), 1e-12)).astype(np.float32)
    return shares


class SmallReader(PromptReader):
    """Talks into ids: the images, then each turn between a token that says whose it is and one that ends it."""

    inputs: SmallInput  # type: ignore[assignment]

    def __init__(self, inputs: SmallInput, context: int = 0) -> None:
        super().__init__(inputs, context)  # type: ignore[arg-type]

    def text(self, ids: Sequence[int]) -> str:
        return self.inputs.tokenizer.text(ids)

    @property
    def ends(self) -> tuple[int, ...]:
        return (self.inputs.special[END],)

    @property
    def sentence_ends(self) -> tuple[int, ...]:
        return tuple(found[0] for sign in ".!?" if len(found := self._words(sign)) == 1)

    @property
    def unsayable(self) -> tuple[int, ...]:
        return tuple(self.inputs.special[name] for name in (IMAGE, PADDING, USER_TURN, ASSISTANT_TURN))

    def _encoded(
        self, turns: Sequence[Exchange], image_tokens: Sequence[int]
    ) -> tuple[list[int], list[bool], list[int]]:
        special = self.inputs.special
        ids = [special[IMAGE]] * sum(image_tokens)
        learnt = [False] * len(ids)
        targets: list[int] = []
        for turn in turns:
            said, starts = self.parts(turn.parts)
            mine = turn.role == ASSISTANT
            targets += [len(ids) + 1 + start for start in starts]
            ids += [special[ASSISTANT_TURN if mine else USER_TURN], *said, special[END]]
            learnt += [False, *[mine] * (len(said) + 1)]
        if turns[-1].role == USER:
            ids.append(special[ASSISTANT_TURN])
            learnt.append(False)
        return ids, learnt, targets

    def _part(self, part: Part) -> list[int]:
        special = self.inputs.special
        if isinstance(part, Box):
            return [special[BOX[0]], *self._points([(part.x1, part.y1), (part.x2, part.y2)]), special[BOX[1]]]
        return super()._part(part)

    def _trajectory(self, part: Trajectory) -> list[int]:
        ids: list[int] = []
        runs = part.runs()
        for frame, trace in runs:
            ids += self._number(frame, always=len(runs) > 1)
            kept = np.linspace(0, len(trace) - 1, min(len(trace), READ_POINTS)).round().astype(int)
            opening, closing = (self.inputs.special[name] for name in TRAJECTORY_TOKENS)
            ids += [opening, *self._points(trace.xy[kept]), closing]
        return ids

    def _points(self, points_xy: Any) -> list[int]:
        return self.inputs.tokenizer.coordinates(Coordinates(Frame.of_grid(1, 1)).to_bins(points_xy).tolist())

    def _words(self, text: str) -> list[int]:
        return self.inputs.tokenizer.words(text)
