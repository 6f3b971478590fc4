"""Networks that read regions, as models that look at photos: a photo becomes a view, the view regions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from PIL import Image

from saywhere.core.caption import OBJECT
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.models.face import Look, Model, name_of
from saywhere.models.folder import SOURCE
from saywhere.models.region_features import RegionFeatures, view_regions
from saywhere.models.region_source import RegionSource
from saywhere.models.search import BEAM, GenerationConfig
from saywhere.vision import DetectingEncoder, Encoder, PhotoLike, View, open_detector, open_encoder, read_photo


class RegionEye(Protocol):
    """What turns a photo into a view, and a view into the regions that a network reads."""

    def look(self, photo: Image.Image) -> View: ...

    def regions(self, view: View) -> RegionFeatures: ...


class EncoderEye:
    """A region for each patch of an encoder."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def look(self, photo: Image.Image) -> View:
        return self.encoder.look(photo)

    def regions(self, view: View) -> RegionFeatures:
        return view_regions(view)


class ModelEye:
    """The regions that another model's looks give for other networks. as_places: or those of its own answers, which
    networks learnt from once."""

    def __init__(self, model: Model, *, as_places: bool = False) -> None:
        self.model, self.as_places = model, as_places

    def look(self, photo: Image.Image) -> View:
        return self.model.look(photo).view

    def regions(self, view: View) -> RegionFeatures:
        look = self.model.see(view)
        return look.places if self.as_places else look.region_set


def open_eye(source: RegionSource | None, folder: str | Path) -> RegionEye:
    """What gives a photo's regions as they were in training. folder: of the network, for errors."""
    if source is None or not (source.encoder or source.model):
        what = f"those of the file {source.file}" if source and source.file else f"not said in {SOURCE}"
        hint = 'to use an encoder all the same, write there {"encoder": {"encoder": NAME, "input_px": 448}}'
        reason = f"the regions that it learnt from are {what}, so it cannot look at photos"
        raise InvalidFile(folder, reason, hint)
    if source.model:
        from saywhere.models.registry import open_model, seer_of

        return ModelEye(open_model(seer_of(source.model, folder)), as_places=not source.region_set)
    return EncoderEye(reopened(source))


def reopened(source: RegionSource) -> Encoder:
    """The encoder of a fingerprint. One whose weights have changed since is refused."""
    sides = {value for key, value in source.encoder.items() if key.endswith("input_px") and "found_by" not in key}
    encoder = open_encoder("+".join(source.encoder_names), int(sides.pop()) if len(sides) == 1 else None)
    if source.has_detector:
        encoder = DetectingEncoder(encoder, open_detector(), float(source.encoder["found_above"]))
    found = encoder.fingerprint
    changed = [key for key, value in source.encoder.items() if found.get(key) != value]
    if changed:
        raise InvalidValue("encoder", f"is another one than in training: {', '.join(changed)} changed")
    return encoder


class RegionModel(ABC):
    """A network that reads regions, ready to look at photos. region_size: numbers of each region."""

    def __init__(self, eye: RegionEye, region_size: int, name: str) -> None:
        self.eye, self.region_size, self.name = eye, region_size, name

    @property
    @abstractmethod
    def skills(self) -> tuple[str, ...]: ...

    @property
    def levels(self) -> tuple[str, ...]:
        return (OBJECT,)

    @property
    def generation(self) -> GenerationConfig:
        return BEAM

    def look(self, photo: PhotoLike, image_id: str = "") -> Look:
        image = read_photo(photo)
        return self.see(self.eye.look(image), image, name_of(photo, image_id))

    @abstractmethod
    def see(self, view: View, image: Image.Image | None = None, image_id: str = "photo") -> Look: ...


class RegionLook(Look):
    """A look whose places are the regions that the network reads."""

    model: Any

    @cached_property
    def places(self) -> RegionFeatures:
        regions: RegionFeatures = self.model.eye.regions(self.view)
        found, read = regions.features.shape[1], self.model.region_size
        if found != read:
            raise InvalidValue("regions", f"have {found} numbers each, but the model {self.model.name} reads {read}")
        return regions
