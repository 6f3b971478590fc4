"""What `saywhere look` wrote, joined with captions and made ready for captioners, decoders and alignments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from saywhere.cli.app import app
from saywhere.core import InvalidFile
from saywhere.language import embed
from saywhere.models.patchioner.data import Pairs, Texts
from saywhere.models.updown import Captions
from saywhere.store import Store
from saywhere.vision import extract, open_views
from saywhere.vision.look import LiteEncoder
from tests.vision.conftest import tiny_network

SAID = {139: ["A red cup.", "a cup, red"], 285: ["a bear", "A brown bear"], 7: ["nobody looked at this"]}


class Letters:
    """Embeds a text by its letters."""

    name, size = "letters", 26
    fingerprint: ClassVar[dict[str, str | int]] = {"text_encoder": "letters"}

    def embed(self, texts: list[str], **_: Any) -> np.ndarray:
        return np.array([[1 + text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)


@pytest.fixture
def views(tmp_path: Path) -> Path:
    photos = [tmp_path / f"{number:012d}.png" for number in (139, 285)]
    for photo in photos:
        Image.new("RGB", (20, 30), (90, int(photo.stem) % 256, 3)).save(photo)
    extract(photos, tmp_path / "views", LiteEncoder(tiny_network(), "tiny", "0" * 64, 64))
    return tmp_path / "views"


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    told = [(image, text) for image, texts in SAID.items() for text in texts]
    annotations = [{"id": i, "image_id": image, "caption": text} for i, (image, text) in enumerate(told)]
    path = tmp_path / "captions.json"
    path.write_text(json.dumps({"images": [{"id": image} for image in SAID], "annotations": annotations}))
    return path


def _run(*arguments: object) -> tuple[int, str]:
    ran = CliRunner().invoke(app, ["prepare", *map(str, arguments)], catch_exceptions=False)
    return ran.exit_code, ran.output


def test_captions_find_the_photos_that_were_looked_at_by_coco_number(
    tmp_path: Path, views: Path, captions: Path
) -> None:
    code, said = _run(
        *("captions", f"train={captions}", "--features", views, "-o", tmp_path / "out", "--least-count", 1)
    )
    made = Captions(tmp_path / "out")
    assert (code, len(made), made.image_name(0)) == (1, 4, "000000000139")
    assert "5 given, 4 kept" in said
    assert "caption train-4: its image is not there" in said
    seen = open_views(views)["000000000139"]
    np.testing.assert_array_equal(made.regions(0).features, seen.patches.reshape(4, -1))
    assert made.vocabulary.text(made.item(0).words.tolist()) == "a red cup"


def test_lists_of_splits_tell_captions_apart_as_they_do_narratives(tmp_path: Path, views: Path, captions: Path) -> None:
    images = [{"file_name": "000000000139", "split": "train"}, {"file_name": "000000000285", "split": "test"}]
    (tmp_path / "split.json").write_text(json.dumps({"images": images}))
    given = ("captions", captions, "--features", views, "-o", tmp_path / "out", "--least-count", 1)
    code, said = _run(*given, "--split", tmp_path / "split.json")
    made = Captions(tmp_path / "out")
    assert (code, made.splits) == (0, {"train": 2, "test": 2})
    assert "4 kept" in said
    assert "1 in no split" in said
    (tmp_path / "other.txt").write_text("139\n")
    with pytest.raises(InvalidFile, match="no caption falls into the split 'train'"):
        _run(*given, "--split", f"test={tmp_path / 'other.txt'}")


def test_sentences_become_texts_each_once_and_plain(
    tmp_path: Path, captions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "open_text_encoder", lambda name: Letters())
    (tmp_path / "more.txt").write_text("A BEAR!\nTwo dogs\n")
    code, said = _run("texts", captions, tmp_path / "more.txt", "-o", tmp_path / "out")
    made = Texts(tmp_path / "out")
    assert (code, len(made), made.about) == (0, 6, {"encoder": {"text_encoder": "letters"}})
    assert "6 sentences, 1 there already" in said
    assert made.vocabulary.text(made[0].ids.tolist()) == "a red cup"
    np.testing.assert_allclose(np.linalg.norm(made[0].vector), 1, atol=1e-2)


def test_pairs_have_every_photo_with_all_its_captions(
    tmp_path: Path, views: Path, captions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "open_text_encoder", lambda name: Letters())
    code, said = _run("pairs", captions, "--views", views, "-o", tmp_path / "out")
    made, seen = Pairs(tmp_path / "out"), open_views(views)
    assert (code, len(made), made.text_size) == (1, 2, 26)
    assert "its photo 7 has no view" in said
    assert made.about == {"encoder": seen.encoder, "text_encoder": {"text_encoder": "letters"}}
    for number, name in enumerate(("000000000139", "000000000285")):
        assert made.texts_of(number).shape == (2, 26)
        np.testing.assert_array_equal(made.feature(number), seen[name].whole)
    Store(tmp_path / "out").verify()


def test_captions_of_other_photos_make_no_pairs(
    tmp_path: Path, views: Path, captions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "open_text_encoder", lambda name: Letters())
    captions.write_text(captions.read_text().replace("139", "5139").replace("285", "5285"))
    with pytest.raises(InvalidFile, match="no caption of a photo that was looked at"):
        _run("pairs", captions, "--views", views, "-o", tmp_path / "out")
