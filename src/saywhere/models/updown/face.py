"""UpDn networks as models that look at photos: one captions regions, the other answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from saywhere.core import Caption, Region
from saywhere.core.caption import OBJECT
from saywhere.core.errors import UnknownName
from saywhere.models.common.overlaps import inside, pointed
from saywhere.models.face import Answer, check_level
from saywhere.models.photo_regions import RegionEye, RegionLook, RegionModel, open_eye
from saywhere.models.region_features import RegionFeatures
from saywhere.models.search import GenerationConfig
from saywhere.models.updown.answering import Answerer
from saywhere.models.updown.captioner import UpDnCaptioner
from saywhere.models.updown.decode import caption
from saywhere.models.updown.vqa import UpDnVqa
from saywhere.vision import View


class UpDnCaptionModel(RegionModel):
    """A captioner. Of a region it reads the photo's regions that lie in it."""

    def __init__(self, network: UpDnCaptioner, eye: RegionEye, name: str = "updown") -> None:
        super().__init__(eye, network.config.region_size, name)
        self.network = network.eval()

    @property
    def skills(self) -> tuple[str, ...]:
        return ("caption",)

    def see(self, view: View, image: Image.Image | None = None, image_id: str = "photo") -> UpDnCaptionLook:
        return UpDnCaptionLook(self, view, image, image_id)


class UpDnCaptionLook(RegionLook):
    model: UpDnCaptionModel

    def captions(
        self, regions: Sequence[Region], how: GenerationConfig | None = None, level: str = OBJECT
    ) -> list[Caption]:
        check_level(level, self.levels, self.model.name)
        images = [self.places_in(region) for region in regions]
        written = caption(self.model.network, images, how or self.model.generation)
        pairs = zip(written, regions, strict=True)
        return [Caption(text.text, text.score, region, origin=self.model.name) for (text, _), region in pairs]

    def places_in(self, region: Region) -> RegionFeatures:
        """The photo's regions that lie in a region."""
        chosen = inside(self.places.boxes_xyxy, region, self.view.frame)
        return RegionFeatures(self.places.features[chosen], self.places.boxes_xyxy[chosen])


class UpDnVqaModel(RegionModel):
    """A network that answers questions."""

    def __init__(self, network: UpDnVqa, eye: RegionEye, name: str = "updown") -> None:
        super().__init__(eye, network.config.region_size, name)
        self.answerer = Answerer(network)

    @property
    def skills(self) -> tuple[str, ...]:
        return ("answer",)

    def see(self, view: View, image: Image.Image | None = None, image_id: str = "photo") -> UpDnVqaLook:
        return UpDnVqaLook(self, view, image, image_id)


class UpDnVqaLook(RegionLook):
    model: UpDnVqaModel

    def answer(self, question: str, region: Region | None = None) -> Answer:
        fits = pointed(self.places.boxes_xyxy, region, self.view.frame)
        [answer] = self.model.answerer.answer([self.places], [question], [fits])
        return answer

    def answer_score(self, question: str, region: Region | None = None, answer: str = "") -> Any:
        fits = pointed(self.places.boxes_xyxy, region, self.view.frame)
        return self.model.answerer.score(self.places, question, fits, answer)


def open_captioner(folder: str | Path, part: str = "") -> UpDnCaptionModel:
    """What `UpDnCaptioner.save_pretrained` wrote, ready to look."""
    network = UpDnCaptioner.from_pretrained(folder)
    return UpDnCaptionModel(network, _eye(network, folder, part), Path(folder).resolve().name)


def open_vqa(folder: str | Path, part: str = "") -> UpDnVqaModel:
    """What `UpDnVqa.save_pretrained` wrote, ready to look."""
    network = UpDnVqa.from_pretrained(folder)
    return UpDnVqaModel(network, _eye(network, folder, part), Path(folder).resolve().name)


def _eye(network: UpDnCaptioner | UpDnVqa, folder: str | Path, part: str) -> RegionEye:
    if part:
        raise UnknownName("part of an UpDn", part, ())
    return open_eye(network.regions_from, folder)
