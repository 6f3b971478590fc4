"""From a COCO store to the eye's features: rows, labels, resumption, and photos that are none."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from saywhere.build.coco import FIELDS, KIND
from saywhere.build.eye_features import build_eye_features, class_vectors
from saywhere.core.errors import InvalidFile
from saywhere.models.eye.features import CAPTIONS, EyeFeatures, PhotoPixels
from saywhere.store import Store, StoreWriter
from saywhere.vision.eye import EyeConfig

CONFIG = EyeConfig(size=8, heads=2, text_size=5, input_px=32, patch_px=8)


class LengthEncoder:
    """Texts as vectors by their length: enough to tell whose they are."""

    name, size = "lengths", 5
    fingerprint: ClassVar[dict[str, str | int]] = {"encoder": "lengths"}

    def embed(self, texts: list[str], **_: Any) -> NDArray[np.float32]:
        vectors = np.array([[len(text), 1, 0, 0, 0] for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Brightness:
    """A trunk whose hidden states are the mean brightness of each patch; it counts the photos it sees."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, pixels: NDArray[np.uint8]) -> tuple[NDArray[np.float32], ...]:
        self.seen += len(pixels)
        patches = pixels.reshape(len(pixels), 4, 8, 4, 8, 3).mean(axis=(2, 4, 5)).reshape(len(pixels), 16)
        states = np.concatenate([patches.mean(axis=1, keepdims=True), patches], axis=1)
        ramp = np.linspace(1, 2, CONFIG.trunk_size, dtype=np.float32)
        return ((states[:, :, None] * ramp).astype(np.float32),)


def jpeg(brightness: int) -> bytes:
    file = BytesIO()
    Image.new("RGB", (40, 30), (brightness,) * 3).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture
def coco(tmp_path: Path) -> Store:
    with StoreWriter(tmp_path / "coco", KIND, FIELDS, {}) as writer:
        for number in range(6):
            writer.add(
                f"{number:012}",
                jpeg=b"no picture" if number == 3 else jpeg(40 * number),
                boxes_xyxy=np.array([[0.1, 0.2, 0.5, 0.6]], np.float32),
                classes=[number],
                captions=["a cat", "two cats"] if number % 2 == 0 else [],
                saliency=np.full((32, 32), 9, np.uint8) if number in (1, 2) else None,
                saliency_split="train" if number == 1 else "val" if number == 2 else None,
                split="validation" if number == 5 else "train",
            )
    return Store(tmp_path / "coco")


def build(coco: Store, out: Path, trunk: Brightness) -> tuple[int, tuple[str, ...]]:
    steps: list[int] = []
    encoder: Any = LengthEncoder()

    def progress(doing: str, done: int, _total: int) -> None:
        if doing == "looking at photos":
            steps.append(done)

    made = build_eye_features(coco, out, trunk, {"trunk": "brightness"}, encoder, CONFIG, progress)
    assert steps == sorted(steps)
    return made.rows, made.unreadable


def test_every_photo_becomes_a_row_with_what_is_known_of_it(coco: Store, tmp_path: Path) -> None:
    assert build(coco, tmp_path / "out", Brightness()) == (5, ("000000000003",))
    train, held = (EyeFeatures(tmp_path / "out", split) for split in ("train", "validation"))
    assert (len(train), len(held)) == (4, 1)
    first = train[0]
    np.testing.assert_allclose(first.boxes_xyxy, [[0.1, 0.2, 0.5, 0.6]], atol=1e-6)
    np.testing.assert_allclose(first.caption_vectors, LengthEncoder().embed(["a cat", "two cats"]), atol=1e-3)
    assert len(train[3].caption_vectors) == 0
    # The brighter photo has the larger hidden states, to a step of the bytes they are kept in.
    by_key = sorted(range(4), key=train.key)
    assert np.all(np.diff([train[i].inputs.mean() for i in by_key]) > 10)


def test_photos_of_which_most_is_known_come_first_and_a_limit_is_gone_on_from(coco: Store, tmp_path: Path) -> None:
    encoder: Any = LengthEncoder()
    for limit, order in ((2, [2, 0]), (None, [2, 0, 4, 1])):
        build_eye_features(coco, tmp_path / "out", Brightness(), {}, encoder, CONFIG, lambda *_: None, limit)
        train = EyeFeatures(tmp_path / "out", "train")
        assert [int(train.key(i)) for i in range(len(train))] == order


def test_looks_that_are_kept_for_measuring_are_not_learnt_from(coco: Store, tmp_path: Path) -> None:
    build(coco, tmp_path / "out", Brightness())
    train = EyeFeatures(tmp_path / "out", "train")
    assert {int(train.key(i)) for i in range(4) if train[i].saliency is not None} == {1}


def test_a_second_run_looks_at_nothing_again(coco: Store, tmp_path: Path) -> None:
    build(coco, tmp_path / "out", Brightness())
    again = Brightness()
    assert build(coco, tmp_path / "out", again)[0] == 5
    assert again.seen == 0


def test_a_store_of_something_else_is_refused(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "other", "views", {"a": "json"}, {}) as writer:
        writer.add("1", a=1)
    with pytest.raises(InvalidFile, match="build coco"):
        build(Store(tmp_path / "other"), tmp_path / "out", Brightness())


def test_classes_are_called_by_their_own_names_first() -> None:
    encoder: Any = LengthEncoder()
    vectors = class_vectors(encoder)
    assert vectors.shape == (80, 5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_labels_alone_need_no_look_and_give_no_hidden_states(coco: Store, tmp_path: Path) -> None:
    encoder: Any = LengthEncoder()
    made = build_eye_features(coco, tmp_path / "out", None, {}, encoder, CONFIG, lambda *_: None)
    assert made.rows == 6
    train = EyeFeatures(tmp_path / "out", "train")
    assert len(train.caption_vectors(0)) == 2
    with pytest.raises(InvalidFile, match="labels-only"):
        train[0]
    seen = EyeFeatures(tmp_path / "out", "train", PhotoPixels(coco.folder, 32))
    assert seen[0].inputs.shape == (32, 32, 3)
    assert seen[0].inputs.dtype == np.uint8


def test_photos_without_captions_are_told_of_by_questions_and_their_boxes_have_names(tmp_path: Path) -> None:
    asked = [
        {"question": "what is on the mat", "answer": "cat", "kind": "object", "split": "train"},
        {"question": "what is the color of the cat", "answer": "red", "kind": "color", "split": "test"},
    ]
    with StoreWriter(tmp_path / "coco", KIND, FIELDS, {}) as writer:
        for number, captions in enumerate((["a cat"], [], [])):
            box = np.array([[0.1, 0.2, 0.5, 0.6]], np.float32)
            known = {"captions": captions, "cocoqa": asked, "split": "train"}
            # What answers are measured on is no statement for an eye to learn from.
            known |= {"questions": [{"split": "valid"}]} if number == 2 else {}
            writer.add(f"{number:012}", jpeg=jpeg(90), boxes_xyxy=box, classes=[15], **known)
    encoder: Any = LengthEncoder()
    build_eye_features(Store(tmp_path / "coco"), tmp_path / "out", Brightness(), {}, encoder, CONFIG, lambda *_: None)
    train = EyeFeatures(tmp_path / "out", "train")
    said = {int(train.key(i)): train[i].statement_vectors for i in range(3)}
    assert {photo: len(vectors) for photo, vectors in said.items()} == {0: 0, 1: 1, 2: 0}
    np.testing.assert_allclose(said[1], LengthEncoder().embed(["a cat is on the mat"]), atol=1e-3)
    kept = {row.key: row for row in Store(tmp_path / "out" / CAPTIONS)}
    assert [len(row["called"]) for row in kept.values()] == [1, 1, 1]
    assert kept[f"{1:012}"]["captions"] == []
