"""A collection of captions above objects on disk: which photos, which questions, and how many people answer each.

    DIR/collection.json   {title, annotators, levels: {scene: question, …}, photos: [{id, file_name}, …]}
    DIR/photos/…          the photos, as the Studio keeps them: upright, without metadata, named by their content
    DIR/saywhere.sqlite   what people wrote; see collect_answers and database

The questions of the levels scene, action and rationale are those of the HL data set (Cafagna et al., 2023). This module
needs no web server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.studio.collect_answers import read_answers
from saywhere.studio.participants import check_shown

COLLECTION, PHOTOS = "collection.json", "photos"
TITLE = "Describe these pictures"
ANNOTATORS = 3
QUESTIONS = {
    "scene": "Where is the picture taken?",
    "action": "What is the subject doing?",
    "rationale": "Why is the subject doing it?",
}
"""Of the levels of HL."""
ADVICE = {
    "scene": "Name the kind of place, with what you know of places like it. There is no need to list what you see.",
    "action": "The subject is the person, or whoever matters most in the picture.",
    "rationale": "Give the reason that seems likely to you, with what you know of such situations.",
}
OTHER_ADVICE = "Use what you know of scenes like this."
OBJECT = "object"
"""Captions of what is in a picture come from COCO; nobody is asked for them here."""
MOST_ANNOTATORS, MOST_LEVELS, MOST_TITLE, MOST_QUESTION = 100, 10, 200, 300
_LEVEL = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class CollectedPhoto(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """id: the Studio's, by content. file_name: as the photo was called; no two photos of a collection share one."""

    id: str
    file_name: str


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection, checked. levels: the question of each, in the order they are asked.

    annotators: how many people answer each question about each photo.
    """

    folder: Path
    title: str
    annotators: int
    levels: Mapping[str, str]
    photos: tuple[CollectedPhoto, ...] = ()

    def __post_init__(self) -> None:
        check_shown("title", self.title, MOST_TITLE)
        if not 1 <= self.annotators <= MOST_ANNOTATORS:
            raise InvalidValue("annotators", f"are {self.annotators} a photo, not 1 … {MOST_ANNOTATORS}")
        if not 1 <= len(self.levels) <= MOST_LEVELS:
            raise InvalidValue("levels", f"are {len(self.levels)}, not 1 … {MOST_LEVELS}")
        for level, question in self.levels.items():
            _check_level(level)
            check_shown(f"question of the level {level}", question, MOST_QUESTION)
        for what in ("id", "file_name"):
            names = [getattr(photo, what) for photo in self.photos]
            if len(set(names)) != len(names):
                raise InvalidValue("photos", f"share a {what}")


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    annotators: int
    levels: dict[str, str]
    photos: list[CollectedPhoto]


def advice(level: str) -> str:
    """What encourages people to say more than what is there to be seen."""
    return ADVICE.get(level, OTHER_ADVICE)


def asked_levels(levels: Sequence[str], questions: Sequence[str] = ()) -> dict[str, str]:
    """The question of each level. questions: "level=question", for further levels or in other words."""
    own: dict[str, str] = {}
    for given in questions:
        level, equals, question = given.partition("=")
        if not equals:
            raise InvalidValue("question", f"{given!r} names no level", "such as: scene=Where was this picture taken?")
        own[level.strip()] = " ".join(question.split())
    asked = {}
    for level in dict.fromkeys([*levels, *own]):
        _check_level(level)
        if level not in own and level not in QUESTIONS:
            hint = f"give one: --question '{level}=…?'; {', '.join(QUESTIONS)} have theirs"
            raise InvalidValue(f"level {level}", "has no question", hint)
        asked[level] = own.get(level) or QUESTIONS[level]
    return asked


def open_collection(
    folder: str | Path,
    *,
    levels: Mapping[str, str] | None = None,
    annotators: int | None = None,
    title: str | None = None,
) -> Collection:
    """The collection of a folder with what is given changed, or a new one; it is not written.

    levels: are added to those that are there. InvalidValue if people have answered another question of a level.
    """
    place = Path(folder)
    if not (place / COLLECTION).exists():
        return Collection(
            place,
            TITLE if title is None else title,
            ANNOTATORS if annotators is None else annotators,
            asked_levels(["scene"]) if levels is None else levels,
        )
    before = read_collection(place)
    answered = {answer.level for answer in read_answers(place)} & set(before.levels)
    for level, question in (levels or {}).items():
        if level in answered and before.levels[level] != question:
            reason = f"people have answered another question: {before.levels[level]}"
            raise InvalidValue(f"question of the level {level}", reason, "ask the new one in another folder")
    return Collection(
        place,
        before.title if title is None else title,
        before.annotators if annotators is None else annotators,
        {**before.levels, **(levels or {})},
        before.photos,
    )


def read_collection(folder: str | Path) -> Collection:
    """The collection of a folder. InvalidFile if there is none, or if it is damaged."""
    path = Path(folder) / COLLECTION
    try:
        written = msgspec.json.decode(path.read_bytes(), type=_Written)
        return Collection(Path(folder), written.title, written.annotators, written.levels, tuple(written.photos))
    except FileNotFoundError as error:
        hint = "begin one with: saywhere collect serve DIR --photos PHOTOS"
        raise InvalidFile(path, "was not found", hint) from error
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidFile(path, f"is not a collection: {error}") from error
    except InvalidValue as error:
        raise InvalidFile(path, f"{error.what}: {error.reason}", error.hint) from error


def write_collection(collection: Collection) -> Path:
    """Write collection.json, whole or not at all; its path."""
    written = _Written(collection.title, collection.annotators, dict(collection.levels), list(collection.photos))
    path = collection.folder / COLLECTION
    with write_atomic(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(written), indent=1) + b"\n")
    return path


def _check_level(level: str) -> None:
    if not _LEVEL.fullmatch(level):
        raise InvalidValue("level", f"{level!r} is none", "small letters, digits, - and _, at most 40, a letter first")
    if level == OBJECT:
        hint = "object captions are joined by: saywhere collect export --captions FILE"
        raise InvalidValue("level", "object is not asked for", hint)
