"""Oscar as a model that looks at photos: captions at its levels, with what a detector found as tags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from saywhere.core import Caption, Region
from saywhere.core.caption import OBJECT, SCENE
from saywhere.core.errors import UnknownName
from saywhere.models.common.overlaps import inside
from saywhere.models.face import check_level
from saywhere.models.oscar.network import Oscar
from saywhere.models.photo_regions import RegionEye, RegionLook, RegionModel, open_eye
from saywhere.models.search import GenerationConfig
from saywhere.models.tagged_regions import TaggedRegions, of_found
from saywhere.vision import View


class OscarModel(RegionModel):
    """An Oscar. Of a region it sees the photo's regions and tags that lie in it."""

    def __init__(self, network: Oscar, eye: RegionEye, name: str = "oscar") -> None:
        super().__init__(eye, network.config.region_size, name)
        self.network = network.eval()

    @property
    def skills(self) -> tuple[str, ...]:
        captions = ("caption",) if set(self.levels) - {SCENE} else ()
        return (*captions, *((SCENE,) if SCENE in self.levels else ()))

    @property
    def levels(self) -> tuple[str, ...]:
        return self.network.config.levels

    def see(self, view: View, image: Image.Image | None = None, image_id: str = "photo") -> OscarLook:
        return OscarLook(self, view, image, image_id)


class OscarLook(RegionLook):
    model: OscarModel

    def captions(
        self, regions: Sequence[Region], how: GenerationConfig | None = None, level: str = OBJECT
    ) -> list[Caption]:
        check_level(level, self.levels, self.model.name)
        images = [self._tagged(region) for region in regions]
        written = self.model.network.write(images, level, how or self.model.generation)
        name, pairs = self.model.name, zip(written, regions, strict=True)
        return [Caption(text.text, text.score, region, level, name) for text, region in pairs]

    def _tagged(self, region: Region) -> TaggedRegions:
        """The photo with everything outside of a region put out of sight."""
        whole, frame = of_found(self.places, self.view.found), self.view.frame
        boxes = whole.tag_boxes_xyxy
        away = ~inside(whole.boxes_xyxy, region, frame)
        tags_away = [] if boxes is None else (~inside(boxes, region, frame)).nonzero()[0].tolist()
        return whole.without(tags_away, away.nonzero()[0].tolist())


def open_oscar(folder: str | Path, part: str = "") -> OscarModel:
    """What `Oscar.save_pretrained` wrote, ready to look."""
    if part:
        raise UnknownName("part of an Oscar", part, ())
    network = Oscar.from_pretrained(folder)
    return OscarModel(network, open_eye(network.regions_from, folder), Path(folder).resolve().name)
