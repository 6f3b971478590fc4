"""MITR as a model that looks at photos: captions along traces and of regions, the trace of a text, narratives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from saywhere.core import Box, Caption, Frame, Grounded, InvalidValue, Narrative, Region, Trace, WholeImage, WordBoxes
from saywhere.core.caption import OBJECT
from saywhere.core.errors import UnknownName
from saywhere.core.types import Floats32
from saywhere.models.common.modes import eval_mode
from saywhere.models.face import check_level, words_to_find
from saywhere.models.mitr import decode
from saywhere.models.mitr.image import GRID, PatchEncoder
from saywhere.models.mitr.network import MITR, Memory
from saywhere.models.mitr.skills import Skills, boxes_along
from saywhere.models.photo_regions import RegionEye, RegionLook, RegionModel, open_eye
from saywhere.models.region_features import RegionFeatures, view_regions
from saywhere.models.search import GenerationConfig
from saywhere.vision import View

_BOXES_OF_A_REGION = 10
"""A region that nobody points along is told as if somebody rested on it for so many words."""


class OwnEye:
    """The small eye that a MITR may have learnt, for square photos."""

    def __init__(self, eye: PatchEncoder) -> None:
        self.eye = eye

    def look(self, photo: Image.Image) -> View:
        side = self.eye.photo_px
        pixels = torch.from_numpy(np.array(photo.resize((side, side), Image.Resampling.BOX)))
        with eval_mode(self.eye):
            photos = pixels.permute(2, 0, 1)[None].float().to(next(self.eye.parameters()).device) / 255
            patches = self.eye(photos)[0].cpu().numpy().reshape(GRID, GRID, -1)
        return View(Frame.squash(photo.size, (side, side), side // GRID), patches, patches.mean(axis=(0, 1)))

    def regions(self, view: View) -> RegionFeatures:
        return view_regions(view)


class MitrModel(RegionModel):
    """A MITR with a vocabulary."""

    def __init__(self, network: MITR, eye: RegionEye, name: str = "mitr") -> None:
        super().__init__(eye, network.config.region_size, name)
        self.network, self.tasks = network.eval(), Skills(network)

    @property
    def skills(self) -> tuple[str, ...]:
        return ("caption", "ground", "narrate")

    @property
    def generation(self) -> GenerationConfig:
        return decode.BEAM

    def see(self, view: View, image: Image.Image | None = None, image_id: str = "photo") -> MitrLook:
        return MitrLook(self, view, image, image_id)


class MitrLook(RegionLook):
    """A photo, encoded once. A caption of the whole photo is what the network says of it alone; one along a trace
    follows it; one of any other region is written along boxes that rest there."""

    model: MitrModel

    @cached_property
    def memory(self) -> Memory:
        """The photo as the network's streams look at it."""
        return self.model.tasks.memory([self.places])

    def captions(
        self, regions: Sequence[Region], how: GenerationConfig | None = None, level: str = OBJECT
    ) -> list[Caption]:
        check_level(level, self.levels, self.model.name)
        tasks, chosen = self.model.tasks, how or self.model.generation
        boxes = [_boxes(region, self.view.frame) for region in regions]
        along = [rows for rows in boxes if rows is not None]
        told = iter(tasks.along(self._memories(len(along)), along, chosen) if along else ())
        alone = decode.joint(tasks.model, self.memory, chosen)[0] if len(along) < len(boxes) else None
        captions = []
        for region, rows in zip(regions, boxes, strict=True):
            said = alone if rows is None else next(told)
            if said is not None:
                text = tasks.vocabulary.text(said.tokens)
                captions.append(Caption(text, said.score, region, origin=self.model.name))
        return captions

    def grounded(self, text: str) -> Grounded:
        return self.model.tasks.ground_in(self.memory, [words_to_find(text)])[0]

    def narrate(self, most: int = 4, seed: int = 0) -> Narrative:  # noqa: ARG002 - it tells the photo in one go
        told = self.model.tasks.narrate_from(self.memory)[0]
        return told.narrative(self.image_id, origin=self.model.name)

    def _memories(self, count: int) -> Memory:
        return self.memory.take(torch.zeros(count, dtype=torch.long, device=self.model.network.device))


def _boxes(region: Region, frame: Frame) -> Floats32 | None:
    """(n, 5) boxes that a caption is written along; None for the whole photo."""
    if isinstance(region, WholeImage):
        return None
    if isinstance(region, Trace):
        found = boxes_along(region)
        if not len(found):
            raise InvalidValue("trace", "points nowhere", "to describe a photo without one, call narrate")
    else:
        corners = region.xyxy if isinstance(region, Box) else _extent(region, frame)
        found = WordBoxes(np.tile(np.clip(corners, 0, 1), (_BOXES_OF_A_REGION, 1)))
    return found.encode().astype(np.float32)


def _extent(region: Region, frame: Frame) -> tuple[float, float, float, float]:
    """The box around all patches that a region meets."""
    rows, cols = region.weights(frame).nonzero()
    x, y = frame.cell_edges()
    return float(x[cols.min()]), float(y[rows.min()]), float(x[cols.max() + 1]), float(y[rows.max() + 1])


def open_mitr(folder: str | Path, part: str = "") -> MitrModel:
    """What `MITR.save_pretrained` wrote, ready to look."""
    if part:
        raise UnknownName("part of a MITR", part, ())
    network = MITR.from_pretrained(folder)
    eye = open_eye(network.regions_from, folder) if network.eye is None else OwnEye(network.eye)
    return MitrModel(network, eye, Path(folder).resolve().name)
