"""What the answering network learns from, as a folder.

FOLDER/places      a store of regions, one row a photo, see `saywhere.models.patchioner.answering.state_places`
FOLDER/questions   a store, one row a photo: its split, what is asked of it, and whether the eye never saw it (held)
FOLDER/texts       a store, one row a question's text, as a text encoder reads it, token by token
FOLDER/answers.json, FOLDER/words.json   answers that can be given; words of the questions that are learnt from
FOLDER/second.safetensors   what makes places of a second look, if there was one
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from saywhere.assets.checkpoint import read_tensors
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats, Floats32
from saywhere.models.answerer.batch import AskedItem, PhotoItem
from saywhere.models.answerer.second import SecondReader
from saywhere.models.common.answers import AnswerVocabulary
from saywhere.models.region_features import REGIONS
from saywhere.store import Store

PLACES, QUESTIONS, TEXTS, ANSWERS, WORDS = "places", "questions", "texts", "answers.json", "words.json"
SECOND = "second.safetensors"
QUESTIONS_KIND, TEXTS_KIND = "questions by photo", "texts token by token"
PLACES_FIELDS = {"regions": "float16", "boxes": "float32"}
QUESTIONS_FIELDS = {"split": "json", "asked": "json", "held": "json"}
TEXTS_FIELDS = {"states": "float16"}
TRAIN, TUNE, TEST = "train", "tune", "test"
"""Splits, by photo: learnt from; to choose by and to calibrate with; to report."""
HUMAN: Final = "human"


class StoredQuestion(msgspec.Struct, frozen=True, array_like=True):
    """source: "human", "captions" or "boxes". targets: answer → how right it is. pointed_xyxy: what is pointed at."""

    text: str
    source: str
    question_type: str
    answer_type: str
    answers: tuple[str, ...]
    targets: tuple[tuple[int, float], ...]
    pointed_xyxy: tuple[float, float, float, float] | None = None


class AnswerData:
    """A folder of questions and photos."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.places = Store(self.folder / PLACES, REGIONS)
        self.questions = Store(self.folder / QUESTIONS, QUESTIONS_KIND)
        self.texts = Store(self.folder / TEXTS, TEXTS_KIND)
        self.answers = AnswerVocabulary.load(self.folder / ANSWERS)
        self.words = _words(self.folder / WORDS)
        self.second = read_second(self.folder / SECOND) if (self.folder / SECOND).exists() else None
        if not len(self.places) or not len(self.texts):
            raise InvalidFile(folder, "has no photo, or no question")

    @property
    def region_size(self) -> int:
        return int(self.places[0]["regions"].shape[1])

    @property
    def text_size(self) -> int:
        return int(self.texts[0]["states"].shape[1])

    @property
    def fingerprint(self) -> str:
        parts = (self.places, self.questions, self.texts)
        return "-".join([*(part.fingerprint for part in parts), str(len(self.answers))])

    def photos(self, split: str) -> dict[str, tuple[StoredQuestion, ...]]:
        """Photo → its questions, for photos of a split that were looked at."""
        found = {}
        for row in self.questions:
            if row["split"] == split and row.key in self.places:
                found[row.key] = msgspec.convert(row["asked"], tuple[StoredQuestion, ...])
        return found

    def held(self) -> frozenset[str]:
        """Photos that the eye did not learn from, either."""
        return frozenset(row.key for row in self.questions if row["held"])

    def item(self, photo: str, asked: Sequence[StoredQuestion], *, blind: bool = False) -> PhotoItem:
        """blind: without what the photo shows, which then is not read."""
        if blind:
            return PhotoItem(
                np.zeros((1, 1), np.float32),
                np.zeros((1, 4), np.float32),
                tuple(self._asked(one, None) for one in asked),
            )
        row = self.places.by_key(photo)
        boxes = np.array(row["boxes"], np.float32)
        return PhotoItem(row["regions"], boxes, tuple(self._asked(one, boxes) for one in asked))

    def _asked(self, one: StoredQuestion, boxes_xyxy: Floats32 | None) -> AskedItem:
        pointed = None
        if one.pointed_xyxy is not None and boxes_xyxy is not None:
            pointed = box_fits(np.array(one.pointed_xyxy), boxes_xyxy).astype(np.float32)
        return AskedItem(
            self.texts.by_key(one.text)["states"],
            np.array([number for number, _ in one.targets], np.int64),
            np.array([score for _, score in one.targets], np.float32),
            pointed,
        )


def box_fits(box_xyxy: Floats, places_xyxy: Any) -> Floats:
    """(r,) how much each place is pointed at by a box: share of the box in the place × share of the place in the box.

    As `saywhere.models.common.overlaps.pointed` has it for boxes.
    """
    places = np.asarray(places_xyxy, dtype=np.float64)
    sides = np.minimum(places[:, 2:], box_xyxy[2:]) - np.maximum(places[:, :2], box_xyxy[:2])
    shared = np.prod(np.clip(sides, 0, None), axis=1)
    areas = np.prod(places[:, 2:] - places[:, :2], axis=1) * np.prod(box_xyxy[2:] - box_xyxy[:2])
    fits: Floats = np.clip(shared**2 / np.maximum(areas, 1e-12), 0, 1)
    return fits


def read_second(path: Path) -> SecondReader:
    """What makes places of a second look, as `saywhere build answers` wrote it."""
    tensors = read_tensors(path)
    if set(tensors) != {"mean", "axes"} or tensors["axes"].ndim != 2:
        raise InvalidFile(path, "does not say how a second look is read", "delete it, and build the answers again")
    reader = SecondReader(*tensors["axes"].shape)
    reader.load_state_dict(tensors)
    return reader


def _words(path: Path) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[str, ...])
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidFile(path, f"is no list of words: {error}") from error
