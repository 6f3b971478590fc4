"""Localized Narratives (Pont-Tuset et al., ECCV 2020): one JSON object a line, plain or gzipped.

The same for all four image sets: Open Images, COCO, Flickr30k and ADE20k. Keys of a record, in the official order:

    dataset_id       "mscoco_val2017"; may be absent
    image_id         "212166"; an integer is taken as its digits
    annotator_id     49; text is taken too; may be absent
    caption          the manual transcription
    timed_caption    [{"utterance", "start_time", "end_time"}], seconds of the recording
    traces           [[{"x", "y", "t"}]], strokes of points: fractions of the image's width and height, seconds
    voice_recording  "coco_val/coco_val_212166_49.ogg"; may be absent
    origin           ours, not official: the model that made the narrative. Written only where that is not a human.
    language         ours, not official: a tag of BCP 47, such as "de". Written only where it is known and not English,
                     because the official loader takes no other keys; a record without it is in English, or in a
                     language that nobody noted.

What becomes of oddities. InvalidRecord, with line and place: not UTF-8, not JSON, a key missing, given twice or of the
wrong type, numbers that no float holds, an empty image_id, an utterance that ends before it starts, starts of
utterances or times of points that go back (also from one stroke to the next). Kept as they are: points outside the
image, utterances of no length, no utterances, several narratives of one image by one annotator. Strokes without points
are left out. Unknown keys are passed over. A UTF-8 byte order mark at the file's start is accepted. An empty file
holds no narratives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidValue
from saywhere.core.narrative import HUMAN, Narrative
from saywhere.core.trace import Trace
from saywhere.core.types import Floats
from saywhere.core.words import Utterance
from saywhere.formats._json_lines import read_json_lines, read_values
from saywhere.formats._strokes import NO_TRACE, joined_trace
from saywhere.formats.record import InvalidRecord

_LONGEST_INTEGER = 18


class RawPoint(msgspec.Struct, frozen=True, gc=False):
    """x, y: fractions of the image's width and height. t: seconds."""

    x: float
    y: float
    t: float


class RawUtterance(msgspec.Struct, frozen=True, gc=False):
    """start_time, end_time: seconds."""

    utterance: str
    start_time: float
    end_time: float


class RawNarrative(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One record as it stands in the file; see the module for its keys."""

    dataset_id: str | int | None = None
    image_id: str | int
    annotator_id: int | str | None = None
    caption: str
    timed_caption: list[RawUtterance]
    traces: list[list[RawPoint]]
    voice_recording: str | None = None
    origin: str | None = None
    language: str | None = None


_DECODER = msgspec.json.Decoder(RawNarrative)
_ENCODER = msgspec.json.Encoder()
_PACKER = msgspec.msgpack.Encoder()
# A packed point is one byte for "map of three", and for each key: one for "text of length 1", the letter, one for
# "double", and the eight of the double, the highest first.
_KEY_BYTES = 11
_POINT_BYTES = 1 + 3 * _KEY_BYTES
_TO_FIRST_NUMBER = 4


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the file looks like Localized Narratives."""
    if b'"actor_narratives"' in head or b'"kf_idx"' in head:
        return False
    return b'"timed_caption"' in head or (b'"traces"' in head and b'"x"' in head)


def read_raw(path: str | Path) -> Iterator[RawNarrative | InvalidRecord]:
    """Every record of the file, typed but without arrays: keys and types are checked, the order of times is not."""
    for item in read_json_lines(path, _DECODER, _colons):
        yield item if isinstance(item, InvalidRecord) else item[2]


def read(path: str | Path) -> Iterator[Narrative | InvalidRecord]:
    """Every narrative of the file, in its order; a bad record in its place."""
    return read_values(path, _DECODER, _colons, _narrative)


def write(path: str | Path, narratives: Iterable[Narrative]) -> int:
    """Write narratives in the official form; how many there were.

    All seven official keys are always there, because the official loader wants them: what is unknown is empty text.
    annotator_id is an integer where it reads like one. A narrative that no human made gets the extra key `origin`,
    one in another language than English `language`; the official loader knows neither.
    """
    written = 0
    with write_atomic(path) as file:
        for narrative in narratives:
            file.write(encoded(narrative) + b"\n")
            written += 1
    return written


def remarks(narrative: Narrative) -> list[str]:
    """What is odd about a narrative and yet valid, in fixed phrases, so that they can be counted over a file."""
    said = " ".join(utterance.text for utterance in narrative.utterances)
    xy = narrative.trace.xy
    odd = {
        "empty trace": not len(xy),
        "points outside the image": bool(((xy < 0) | (xy > 1)).any()),
        "no timed words": not said.strip(),
        "utterances of no length": any(u.end_s == u.start_s for u in narrative.utterances),
        "caption and timed words differ": bool(said.strip()) and _letters(said) != _letters(narrative.caption),
    }
    return [phrase for phrase, holds in odd.items() if holds]


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def _colons(raw: RawNarrative) -> int:
    points, utterances = sum(map(len, raw.traces)), raw.timed_caption
    more = (raw.dataset_id, raw.annotator_id, raw.voice_recording, raw.origin, raw.language)
    keys = 4 + sum(value is not None for value in more)
    texts = "".join(map(str, (raw.image_id, raw.caption, *more)))
    return 3 * (points + len(utterances)) + keys + texts.count(":") + sum(u.utterance.count(":") for u in utterances)


def _narrative(raw: RawNarrative) -> Narrative:
    if raw.image_id == "":
        raise InvalidValue("image_id", "is empty")
    return Narrative(
        image_id=str(raw.image_id),
        caption=raw.caption,
        utterances=_utterances(raw.timed_caption),
        trace=_trace(raw.traces),
        dataset_id="" if raw.dataset_id is None else str(raw.dataset_id),
        annotator_id="" if raw.annotator_id is None else str(raw.annotator_id),
        audio=raw.voice_recording or "",
        origin=raw.origin or HUMAN,
        language=raw.language or "",
    )


def _utterances(timed: list[RawUtterance]) -> tuple[Utterance, ...]:
    before = float("-inf")
    for i, u in enumerate(timed):
        if u.end_time < u.start_time:
            reason = f"ends at {u.end_time:g} s, before it starts at {u.start_time:g} s"
            raise InvalidValue(f"timed_caption[{i}].end_time", reason)
        if u.start_time < before:
            reason = f"is {u.start_time:g} s, earlier than the utterance ahead of it at {before:g} s"
            raise InvalidValue(f"timed_caption[{i}].start_time", reason)
        before = u.start_time
    return tuple([Utterance(u.utterance, u.start_time, u.end_time) for u in timed])


def _trace(strokes: list[list[RawPoint]]) -> Trace:
    points = strokes[0] if len(strokes) == 1 else list(chain.from_iterable(strokes))
    return joined_trace(_xyt(points), [len(stroke) for stroke in strokes], "traces", "t") if points else NO_TRACE


def _xyt(points: list[RawPoint]) -> Floats:
    """(n, 3) x, y, t.

    MessagePack is a detour that pays: msgspec packs all points in C, each into the same bytes, and numpy takes the
    numbers out of them. That is twice as fast as collecting the points' attributes.
    """
    packed = _PACKER.encode(points)
    first = len(packed) - _POINT_BYTES * len(points) + _TO_FIRST_NUMBER
    numbers = np.ndarray((len(points), 3), ">f8", packed, first, (_POINT_BYTES, _KEY_BYTES))
    return numbers.astype(np.float64)


def encoded(narrative: Narrative) -> bytes:
    """One line of the official form, without its end; see `write`."""
    if not isinstance(narrative, Narrative):
        raise InvalidValue("narrative", f"is a {type(narrative).__name__}")
    raw = RawNarrative(
        dataset_id=narrative.dataset_id,
        image_id=narrative.image_id,
        annotator_id=official_annotator(narrative.annotator_id),
        caption=narrative.caption,
        timed_caption=[RawUtterance(u.text, u.start_s, u.end_s) for u in narrative.utterances],
        traces=[[RawPoint(*point) for point in segment.tolist()] for segment in narrative.trace.segments],
        voice_recording=narrative.audio,
        origin=None if narrative.origin == HUMAN else narrative.origin,
        language=noted_language(narrative),
    )
    try:
        return _ENCODER.encode(raw)
    except UnicodeEncodeError as error:
        raise InvalidValue(f"narrative {narrative.id!r}", "holds half a character (a lone surrogate)") from error


def noted_language(narrative: Narrative) -> str | None:
    """The language of a narrative where it is known and not English, which official files need not say.

    >>> noted_language(Narrative("139", language="de")), noted_language(Narrative("139", language="en-GB"))
    ('de', None)
    """
    english = narrative.language.partition("-")[0].lower() == "en"
    return None if english or not narrative.language else narrative.language


def official_annotator(annotator_id: str) -> int | str:
    """An integer where it reads like one, as in the official files.

    >>> official_annotator("103"), official_annotator("007"), official_annotator("ada")
    (103, '007', 'ada')
    """
    digits = annotator_id.isascii() and annotator_id.isdigit() and len(annotator_id) <= _LONGEST_INTEGER
    return int(annotator_id) if digits and str(int(annotator_id)) == annotator_id else annotator_id
