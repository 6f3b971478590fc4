"""The recipe of the embedded model, at a scale of seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from saywhere.build.base import BaseSettings, build_base, imagenet_names, plain, remember
from saywhere.build.base_photos import PhotoSet, coco_set, flickr_set, look_at
from saywhere.build.held_out import held_out
from saywhere.build.region_texts import ClassBox
from saywhere.core import Frame, InvalidValue, WholeImage
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.seer import open_eyes, open_seer, read_config
from saywhere.vision import Found, View, read_photo
from saywhere.vision.detector import Detected
from saywhere.vision.view import Proposals

_COLOURS = {"red": (220, 30, 30), "green": (30, 200, 40), "blue": (30, 40, 220)}
_GRID = 2


class _ColourEncoder:
    """Sees the mean colour of each quarter."""

    size = 3
    # As an encoder has that was made to tell a thousand classes apart.
    classifier = np.zeros((1000, 3), np.float32), np.zeros(1000, np.float32)
    fingerprint: ClassVar[dict[str, str]] = {"encoder": "colour"}

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        return Frame.squash(photo_size, (_GRID, _GRID), 1)

    def look(self, photo: object) -> View:
        image = read_photo(photo)
        patches = np.asarray(image.resize((_GRID, _GRID), Image.Resampling.BOX), dtype=np.float32) / 255
        return View(self.frame(image.size), patches, patches.mean(axis=(0, 1)))


class _Blind:
    """A detector that finds one dim thing everywhere."""

    names = ("cup", "dog")
    fingerprint: ClassVar[dict[str, str]] = {"detector": "blind"}

    def find(self, photo: object, least_score: float = 0.0) -> Detected:
        box = (0.1, 0.1, 0.6, 0.9)
        weighed = Proposals(np.array([box], np.float32), np.array([[0.3, 0.0]], np.float32), self.names)
        return Detected((Found(box, "cup", 0.3),), weighed)


class _Letters:
    """Counts letters."""

    name, size = "letters", 27
    fingerprint: ClassVar[dict[str, str]] = {"encoder": "letters"}

    def embed(self, texts, *, batch=64, progress=None) -> np.ndarray:
        rows = np.array(
            [[text.lower().count(chr(97 + i)) for i in range(26)] + [1] for text in texts], dtype=np.float32
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def photos(tmp_path: Path) -> PhotoSet:
    folder = tmp_path / "photos"
    folder.mkdir()
    captions, paths = {}, []
    for number in range(12):
        colour = list(_COLOURS)[number % 3]
        noise = np.random.default_rng(number).integers(-20, 20, size=(8, 8, 3))
        pixels = np.clip(np.array(_COLOURS[colour]) + noise, 0, 255).astype(np.uint8)
        paths.append(folder / f"{number:012d}.png")
        Image.fromarray(pixels).save(paths[-1])
        captions[paths[-1].stem] = [f"a {colour} wall number {i}" for i in range(5)]
    return PhotoSet(tuple(paths), captions)


def test_the_whole_recipe_makes_a_seer_that_tells_colours_apart(tmp_path: Path, photos: PhotoSet) -> None:
    settings = BaseSettings(
        penalty=1.0,
        steps=8,
        seen_steps=2,
        reward_steps=2,
        batch=8,
        reward_batch=4,
        min_count=1,
        held_out=8,
        width=16,
        layers=1,
    )
    texts = [f"the {colour} wall" for colour in _COLOURS] * 10
    out, work = tmp_path / "model", tmp_path / "work"
    said: list[str] = []
    parts = ([photos], texts, [["a grey wall"]], out, work, _ColourEncoder(), _Blind(), _Letters(), settings)
    boxes = [ClassBox(path.stem, "cup", (0.1, 0.1, 0.6, 0.9)) for path in photos.photos]
    build_base(*parts, lambda doing, done, total: said.append(doing), boxes)
    assert {"looking at photos", "looking at boxes", "finding phrases"} <= set(said)
    for writer in ("zero-shot", "supervised"):
        eyes = open_eyes(out, read_config(out), encoder=_ColourEncoder(), detector=_Blind())
        seer = open_seer(out, writer, eyes=eyes)
        captions = [seer.look(path).caption(WholeImage()).text for path in photos.photos[:3]]
        assert all(text for text in captions)
    nearest = [seer.look(path).caption().nearest[0].sentence for path in photos.photos[:3]]
    assert [text.split()[1] for text in nearest] == ["red", "green", "blue"]


def test_what_was_looked_at_is_not_looked_at_again(tmp_path: Path, photos: PhotoSet) -> None:
    first = look_at([photos], tmp_path / "work", _ColourEncoder(), _Blind(), lambda *_: None)

    class _Gone(_ColourEncoder):
        def look(self, photo: object) -> View:
            raise AssertionError("looked again")

    again = look_at([photos], tmp_path / "work", _Gone(), _Blind(), lambda *_: None)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])


def test_the_memory_holds_each_sentence_and_phrase_once(tmp_path: Path) -> None:
    sentences, phrases = ["A red wall.", "a red  wall", "a dog"], ["a red wall", "a cat"]
    vectors = [_Letters().embed(texts) for texts in (sentences, phrases)]
    remember(sentences, vectors[0], phrases, vectors[1], _Letters(), tmp_path / "memory.safetensors")
    bank = MemoryBank.load(tmp_path / "memory.safetensors")
    assert list(bank.sentences) == ["A red wall.", "a dog", "a cat"]
    np.testing.assert_allclose(bank.vectors[2], vectors[1][1], atol=1e-3)


def test_photos_with_too_few_captions_are_refused(tmp_path: Path, photos: PhotoSet) -> None:
    photos.captions[photos.photos[0].stem].pop()
    parts = ([photos], ["a wall"], [], tmp_path / "m", tmp_path / "w", _ColourEncoder(), _Blind(), _Letters())
    with pytest.raises(InvalidValue, match="1 photos have fewer than 5"):
        build_base(*parts, BaseSettings(), lambda *_: None)


def test_held_out_photos_and_their_captions_are_never_seen(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("000000000001", "000000000002"):
        Image.new("RGB", (4, 4)).save(folder / f"{name}.png")
    records = [{"id": i, "image_id": i, "caption": f"caption {i}"} for i in (1, 2, 3, 4)]
    images = [{"id": i, "file_name": f"{i:012d}.jpg", "width": 4, "height": 4} for i in (1, 2, 3, 4)]
    (tmp_path / "captions.json").write_text(json.dumps({"images": images, "annotations": records}))
    left_out = frozenset({"000000000002", "000000000004"})
    own, others = coco_set(folder, tmp_path / "captions.json", left_out, weight=2.0)
    assert [path.stem for path in own.photos] == ["000000000001"]
    assert own.captions == {"000000000001": ["caption 1"]}
    assert others == [["caption 3"]]


def test_flickr_captions_are_joined_with_their_photos(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    Image.new("RGB", (4, 4)).save(folder / "12_ab.png")
    (tmp_path / "tokens.txt").write_text("12_ab.jpg#0\tA dog .\n12_ab.jpg#1\tA cat .\n99.jpg#0\tNobody .\n")
    made = flickr_set(folder, tmp_path / "tokens.txt")
    assert [path.stem for path in made.photos] == ["12_ab"]
    assert made.captions["12_ab"] == ["A dog .", "A cat ."]


def test_the_lists_of_held_out_photos_do_not_overlap() -> None:
    test, validation = held_out("test"), held_out("validation")
    assert (len(test), len(validation)) == (500, 250)
    assert not test & validation


def test_imagenet_has_a_thousand_names_in_the_usual_order() -> None:
    names = imagenet_names()
    assert len(names) == 1000
    assert (names[0], names[281], names[999]) == ("tench", "tabby", "toilet tissue")


def test_plain_text_keeps_words_alone() -> None:
    assert plain("A man's T-shirt, red; and 2 dogs!") == "a man's t-shirt red and 2 dogs"
