"""Where people look, measured: a model that knows it, one that does not, and stores without such maps."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saywhere.build.coco import FIELDS, KIND
from saywhere.core import InvalidFile
from saywhere.reproduce.saliency import saliency_measures
from saywhere.store import Store, StoreWriter

SIDE = 8


def spot(number: int) -> np.ndarray[Any, Any]:
    """People look at one place, another in every photo."""
    looks = np.zeros((SIDE, SIDE), np.uint8)
    looks[number % SIDE, (3 * number) % SIDE] = 255
    return looks


@pytest.fixture
def store(tmp_path: Path) -> Store:
    with StoreWriter(tmp_path / "coco", KIND, FIELDS, {}) as writer:
        for number in range(12):
            file = BytesIO()
            Image.new("L", (SIDE, SIDE), 20 * number).save(file, "PNG")
            split = "val" if number > 5 else "train"
            looks = None if number == 0 else spot(number)
            writer.add(f"{number:012}", jpeg=file.getvalue(), saliency=looks, saliency_split=split, split="train")
    return Store(tmp_path / "coco")


class Knowing:
    """Knows where people look by how bright the photo is."""

    def look(self, photo: Image.Image) -> Any:
        number = round(np.asarray(photo).mean() / 20)
        return SimpleNamespace(view=SimpleNamespace(attention=spot(number).astype(np.float32) / 255))


def quiet(what: str, done: int, total: int) -> None:
    assert done <= total, what


def test_who_knows_is_right_and_the_mean_map_is_not(store: Store) -> None:
    measures = saliency_measures(Knowing(), store, 4, quiet)
    assert measures["saliency CC"] == pytest.approx(100)
    assert measures["saliency SIM"] == pytest.approx(100)
    assert measures["saliency CC of the mean map"] < 50


def test_fixations_are_counted_in_deviations_from_the_mean(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "fixations"
    folder.mkdir()
    for number in range(6, 9):
        Image.fromarray(spot(number)).save(folder / f"COCO_val2014_{number:012}.png")
    measures = saliency_measures(Knowing(), store, 12, quiet, folder)
    # One cell of SIDE² is bright: so many deviations is it above the mean, and only there did people look.
    cells = SIDE**2
    assert measures["saliency NSS"] == pytest.approx((1 - 1 / cells) / np.sqrt(1 / cells), rel=0.02)
    assert measures["saliency NSS of the mean map"] < measures["saliency NSS"] / 2
    with pytest.raises(InvalidFile, match="no picture"):
        saliency_measures(Knowing(), store, 12, quiet, tmp_path)


def test_a_model_without_attention_is_not_measured_and_a_store_without_maps_refused(
    store: Store, tmp_path: Path
) -> None:
    blind = SimpleNamespace(look=lambda photo: SimpleNamespace(view=SimpleNamespace(attention=None)))
    assert saliency_measures(blind, store, 4, quiet) == {}
    with StoreWriter(tmp_path / "none", KIND, FIELDS, {}) as writer:
        writer.add("0", jpeg=b"", split="train")
    with pytest.raises(InvalidFile, match="SALICON"):
        saliency_measures(Knowing(), Store(tmp_path / "none"), 4, quiet)
