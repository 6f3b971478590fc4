"""Narratives on disk: a folder for each, with narrative.json and, if something was said, audio.wav.

Whoever changes a narrative makes a new version of it; the earlier ones stay beside it (`history`).

What was drawn is kept as it came: every point, its time, the order, and where strokes begin. Files appear whole or not
at all. Whether there is audio is seen from the file, not written down, so that a voice and a text that arrive at the
same time cannot undo each other.
"""

from __future__ import annotations

import re
import secrets
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from math import nan
from pathlib import Path
from typing import Any

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.alignment import WordBoxes
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.core.narrative import HUMAN, is_language
from saywhere.core.trace import Trace
from saywhere.core.words import Word, check_order
from saywhere.studio import history
from saywhere.studio.errors import Refused
from saywhere.studio.read_once import ReadOnce

MOST_CHARACTERS = 20_000
MOST_WORDS = 5_000
MOST_POINTS = 200_000
MOST_KEYS = 100_000
LONGEST_NAME = 200
TIMED_BY = ("audio", "keys", "even", "hand", "file", None)

_ID = re.compile(r"[0-9a-f]{16,32}")
_FARTHEST = 10.0
_LATEST_S = 86_400.0
_TEXT, _SOUND = "narrative.json", "audio.wav"
_GONE = ".gone-"

Record = dict[str, Any]
Records = list[Record]


class _Drawn(msgspec.Struct):
    starts: list[int]


class _About(msgspec.Struct):
    """What a narrative is about: all that is decoded of it when photos are counted."""

    photo: str
    origin: str
    trace: _Drawn
    source: str = ""


class NarrativeStore:
    """All narratives of one Studio. Threads may share it: one changes a narrative at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._changing = threading.Lock()
        self._about = ReadOnce(msgspec.json.Decoder(_About).decode)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidFile(folder, f"cannot be made: {error.strerror or error}") from error
        for leftover in folder.glob(f"{_GONE}*"):
            shutil.rmtree(leftover)

    def create(self, record: Mapping[str, Any]) -> Record:
        """Keep a new narrative; what is kept of it, with id, created and audio.

        Its id is random. A client may choose one of 16 to 32 hexadecimal digits, so that what is sent again because
        the answer was lost makes no second narrative: 409 if it is there.
        """
        chosen = record.get("id")
        if chosen is not None and not (isinstance(chosen, str) and _ID.fullmatch(chosen)):
            raise InvalidValue("id", "is not 16 to 32 hexadecimal digits", "leave it out, and one is made")
        narrative_id = chosen or secrets.token_hex(16)
        created = record.get("created") or _now()
        kept = checked(record) | {"id": narrative_id, "created": _moment(created), "version": history.FIRST}
        with self._changing:
            if (self.folder / narrative_id / _TEXT).exists():
                raise Refused(409, "narrative_exists", f"there is a narrative {narrative_id} already", "use PUT")
            self._write(kept)
        return kept | {"changed": kept["created"], "audio": False}

    def get(self, narrative_id: str) -> Record:
        """One narrative. UnknownName if there is none of this id."""
        path = self._place(narrative_id) / _TEXT
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise UnknownName("narrative", narrative_id, ()) from error
        except OSError as error:
            raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error
        return self._read(path, data)

    def files(self) -> Iterator[Path]:
        """The file of every narrative. One may be deleted before it is read."""
        return (path for path in self.folder.glob(f"*/{_TEXT}") if _ID.fullmatch(path.parent.name))

    def list(self, photo: str | None = None) -> Records:
        """All narratives, or those of one photo, the oldest first."""
        found: Records = []
        for path in self.files():
            try:
                found.append(self._read(path, path.read_bytes()))
            except FileNotFoundError:
                continue  # It was deleted while we listed.
        chosen = [record for record in found if photo is None or record["photo"] == photo]
        return sorted(chosen, key=lambda record: (record["created"], record["id"]))

    def ids(self) -> tuple[str, ...]:
        """Of all narratives, in no order of time."""
        found = (path.parent.name for path in self.folder.glob(f"*/{_TEXT}"))
        return tuple(sorted(name for name in found if _ID.fullmatch(name)))

    def told_photos(self) -> set[str]:
        """The photos that a person told something about. A caption out of a file, without pointing, is no telling."""
        about = self._about.each(self.files())
        return {one.photo for one in about if one.origin == HUMAN and (one.trace.starts or not one.source)}

    def replace(self, narrative_id: str, record: Mapping[str, Any]) -> Record:
        """Make another version of it; id, time of creation and audio stay, and what was there is kept.

        Nothing happens if it says the same. 409 if the record was made from a version that holds no more.
        """
        kept = checked(record)
        with self._changing:
            before = self.get(narrative_id)
            if record.get("version") not in (None, before["version"]):
                hint = "fetch it again; what both wrote is kept"
                raise Refused(409, "changed_meanwhile", "the narrative was changed by somebody else meanwhile", hint)
            if all(kept.get(name) == before.get(name) for name in (*kept, "boxes", "typed", "source", "language")):
                return before
            audio = before.pop("audio")
            history.keep(self._place(narrative_id), before)
            kept |= {"id": before["id"], "created": before["created"]}
            kept |= {"version": before["version"] + 1, "changed": _now()}
            self._write(kept)
            return kept | {"audio": audio}

    def versions(self, narrative_id: str) -> Records:
        """All versions, the newest first; the first of them is the one that holds."""
        current = self.get(narrative_id)
        earlier = history.numbers(self._place(narrative_id), current["version"])
        return [current, *(self.version(narrative_id, number) for number in earlier)]

    def version(self, narrative_id: str, number: int) -> Record:
        """One version, as it was. UnknownName if there is none of this number."""
        current = self.get(narrative_id)
        if number == current["version"]:
            return current
        earlier = history.version(self._place(narrative_id), number)
        return {"changed": earlier["created"]} | earlier | {"audio": current["audio"]}

    def restore(self, narrative_id: str, number: int) -> Record:
        """Make an earlier version the newest. The one that holds now is kept as any other."""
        return self.replace(narrative_id, self.version(narrative_id, number) | {"version": None})

    def delete(self, narrative_id: str) -> None:
        """Delete a narrative with its audio. It is gone at once, even if deleting its files takes a while."""
        with self._changing:
            self.get(narrative_id)
            gone = self.folder / f"{_GONE}{narrative_id}-{secrets.token_hex(4)}"
            self._place(narrative_id).rename(gone)
        shutil.rmtree(gone)

    def put_audio(self, narrative_id: str, wav: bytes) -> None:
        """Keep what was said, instead of what was kept before. InvalidValue unless it is a WAV file of 16-bit PCM."""
        from saywhere.language.sound import read_wav

        read_wav(wav)
        with self._changing:
            self.get(narrative_id)
            with write_atomic(self._place(narrative_id) / _SOUND) as file:
                file.write(wav)

    def audio_path(self, narrative_id: str) -> Path | None:
        """The WAV file of a narrative, if something was said."""
        path = self._place(narrative_id) / _SOUND
        return path if path.exists() else None

    def _place(self, narrative_id: str) -> Path:
        # Only what can be an id becomes a path.
        if not _ID.fullmatch(narrative_id):
            raise UnknownName("narrative", narrative_id, ())
        return self.folder / narrative_id

    def _write(self, record: Record) -> None:
        try:
            data = msgspec.json.encode(record)
        except UnicodeEncodeError as error:
            raise InvalidValue("the narrative", "holds half a character (a lone surrogate)") from error
        with write_atomic(self._place(record["id"]) / _TEXT) as file:
            file.write(data)

    def _read(self, path: Path, data: bytes) -> Record:
        try:
            record = msgspec.json.decode(data, type=Record)
        except msgspec.DecodeError as error:
            raise InvalidFile(path, f"is damaged: {error}") from error
        kept = {"version": history.FIRST, "changed": record["created"]} | record
        return kept | {"audio": (path.parent / _SOUND).exists()}


def checked(record: Mapping[str, Any]) -> Record:
    """What the store keeps of a record, if it makes sense; InvalidValue if not. Times and points are not touched."""
    kept: Record = {
        "photo": _text(record, "photo", LONGEST_NAME),
        "annotator": _text(record, "annotator", LONGEST_NAME, ""),
        "text": _text(record, "text", MOST_CHARACTERS, ""),
        "origin": _text(record, "origin", LONGEST_NAME, HUMAN),
        "timed_by": record.get("timed_by"),
        "words": _items(record, "words", MOST_WORDS),
        "trace": _trace(record.get("trace") or {"points": [], "starts": []}),
        "keys": _items(record, "keys", MOST_KEYS),
    }
    for name in ("photo", "origin"):
        if not kept[name]:
            raise InvalidValue(name, "is empty")
    if kept["timed_by"] not in TIMED_BY:
        raise InvalidValue("timed_by", f"is {kept['timed_by']!r}, not audio, keys, even, hand or file")
    _check_words(kept["words"])
    _check_keys(kept["keys"])
    for name, most in (("typed", MOST_CHARACTERS), ("source", LONGEST_NAME)):
        if record.get(name) is not None:
            kept[name] = _text(record, name, most)
    if record.get("language") is not None:
        kept["language"] = _language(record["language"])
    boxes = record.get("boxes")
    if boxes is not None:
        kept["boxes"] = _boxes(boxes, len(kept["words"]))
    if record.get("frames") is not None:
        word_spans(kept["text"], [word["text"] for word in kept["words"]])
        kept |= _filmed(record, len(kept["trace"]["starts"]))
    return kept


def word_spans(text: str, words: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """First character and end of each word in the text that they are of; InvalidValue if they are not.

    >>> word_spans("a cat, a hat", ["a", "cat,", "a", "hat"])
    ((0, 1), (2, 6), (7, 8), (9, 12))
    """
    spans, at = [], 0
    for word in words:
        start = text.find(word, at)
        if start < 0:
            raise InvalidValue("words", f"hold {word[:100]!r}, which the text does not have there")
        at = start + len(word)
        spans.append((start, at))
    return tuple(spans)


def _filmed(record: Mapping[str, Any], n_strokes: int) -> Record:
    """Of what was told about a video: whom it tells of, the chosen frames, and the one each stroke lies on."""
    frames, lies_on = list(record["frames"]), list(record.get("stroke_frames") or ())
    if len(lies_on) != n_strokes:
        raise InvalidValue("stroke_frames", f"are {len(lies_on)}, not one for each of {n_strokes} strokes")
    for one in lies_on:
        if not 0 <= one < len(frames):
            raise InvalidValue("stroke_frames", f"name the frame {one}, and {len(frames)} were chosen")
    return {"actor": _text(record, "actor", LONGEST_NAME, ""), "frames": frames, "stroke_frames": lies_on}


def _text(record: Mapping[str, Any], name: str, most: int, default: str | None = None) -> str:
    text = record.get(name, default)
    if not isinstance(text, str):
        raise InvalidValue(name, "is not text")
    if len(text) > most:
        raise InvalidValue(name, f"has {len(text):,} characters; at most {most:,} are kept")
    return text


def _language(tag: object) -> str:
    if not isinstance(tag, str) or not is_language(tag):
        raise InvalidValue("language", f"is {str(tag)[:50]!r}, no tag of a language", "send en, pt-BR or the like")
    return tag


def _items(record: Mapping[str, Any], name: str, most: int) -> list[dict[str, Any]]:
    items = record.get(name) or []
    if len(items) > most:
        raise InvalidValue(name, f"are {len(items):,}; at most {most:,} are kept")
    return [dict(item) for item in items]


def _trace(drawn: Mapping[str, Any]) -> dict[str, Any]:
    points, starts = [list(point) for point in drawn["points"]], list(drawn["starts"])
    if len(points) > MOST_POINTS:
        raise InvalidValue("trace", f"has {len(points):,} points; at most {MOST_POINTS:,} are kept")
    trace = Trace(points, starts)
    if len(trace):
        if abs(trace.xy).max() > _FARTHEST:
            raise InvalidValue("trace", "goes farther from the photo than a hand can reach")
        if abs(trace.times_s).max() > _LATEST_S:
            raise InvalidValue("trace", "has a time more than a day from the start of the recording")
    return {"points": points, "starts": starts if points else []}


def _check_words(words: Sequence[Mapping[str, Any]]) -> None:
    check_order([Word(word["text"], word["start_s"], word["end_s"]) for word in words])


def _check_keys(keys: Sequence[Mapping[str, Any]]) -> None:
    for before, after in pairwise(keys):
        if after["t"] < before["t"]:
            raise InvalidValue("keys", f"go back in time from {before['t']:g} s to {after['t']:g} s")
    for key in keys:
        if not 0 <= key["text_length"] <= MOST_CHARACTERS or not abs(key["t"]) <= _LATEST_S:
            raise InvalidValue("keys", f"hold a length of {key['text_length']:,} characters at {key['t']:g} s")


def _boxes(boxes: Sequence[Sequence[float] | None], n_words: int) -> list[list[float] | None]:
    if len(boxes) != n_words:
        raise InvalidValue("boxes", f"are {len(boxes)}, not one for each of {n_words} words")
    if boxes:
        WordBoxes([[nan] * 4 if box is None else box for box in boxes], [box is not None for box in boxes])
    return [None if box is None else list(box) for box in boxes]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _moment(created: str) -> str:
    try:
        moment = datetime.fromisoformat(created)
        utc = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidValue("created", "is not a time in ISO 8601") from error
    if moment.tzinfo is None:
        raise InvalidValue("created", "does not say its time zone")
    return utc.isoformat(timespec="milliseconds")
