"""Find photos, and the place in them: by a text, an example, what is beside it, where it is, or what was said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saywhere.core import InvalidValue, Trace
from saywhere.core.types import Floats32
from saywhere.index.library import Library
from saywhere.index.places import working
from saywhere.index.seen import image_id_of
from saywhere.index.tables import PHOTOS, REGIONS, SAID, one_of

Box4 = tuple[float, float, float, float]
_PROBES, _REFINED = 24, 10
"""Cells of the inverted file that are looked into, and how many times the wanted rows are compared exactly."""
_POOL = 40
"""So many times the wanted regions are ranked anew by where they are."""
_PER_PHOTO = 8
"""So many of the nearest regions may be in one photo, about."""
_PLACE = 0.25
"""What a region gains if it lies just where a trace goes; its cosine with a text that means it is about 0.8."""
_SAME = 0.5
"""Boxes that overlap by more (IoU) are one thing."""
_SURELY_FOUND, _LARGE = 0.3, 0.4
"""A thing is meant by its name from this score on; of several a large one, as in `models.patchioner.grounding`."""
_LEAST_SIDE = 0.1
"""Of the box around a trace: a hand may draw a line."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for.

    vector: (d,) of length 1, of a text or of an example region. query: of a text, by which it finds whole photos, if it
    is read in another way for that; see `Seer.queries`. regions: rank regions, not whole photos. near: (d,) of
    something else that is to be beside it. trace: where in the photo it is to be. said: look in narratives, not in
    photos. word: only photos with a thing of this name. names: kinds of things that the text names; in a photo that was
    found, a thing of such a kind is the place, if there is one.
    """

    vector: Floats32
    regions: bool = False
    near: Floats32 | None = None
    trace: Trace | None = None
    said: bool = False
    word: str = ""
    names: frozenset[str] = frozenset()
    query: Floats32 | None = None

    def __post_init__(self) -> None:
        if self.said and (self.regions or self.near is not None or self.trace is not None or self.word):
            raise InvalidValue("query", "asks for what was said and for what is seen", "ask one after the other")


@dataclass(frozen=True, slots=True)
class Hit:
    """A photo, and the place in it.

    photo: its name in the library; empty if it is not there. image_id: what narratives call it. box_xyxy: in fractions;
    None if nobody pointed. score: the cosine with what was looked for, with what its place adds. name: of the thing
    there; empty for a part of the photo. said, who, start_s: if somebody said it.
    """

    photo: str
    image_id: str
    box_xyxy: Box4 | None
    score: float
    name: str = ""
    said: str = ""
    who: str = ""
    start_s: float = 0.0


def search(library: Library, query: Query, limit: int = 10) -> list[Hit]:
    """The photos that fit best, each once, best first."""
    if limit < 1:
        raise InvalidValue("limit", f"is {limit}, not at least 1")
    for vector in (query.vector, query.vector if query.query is None else query.query):
        if vector.shape != (library.about.size,):
            reason = f"has {vector.shape[-1]} numbers, but the library's vectors have {library.about.size}"
            raise InvalidValue("query", reason, f"it was made with {library.about.model}")
    if query.said:
        return _said(library, query, limit)
    if query.regions or query.near is not None or query.trace is not None:
        return _regions(library, query, limit)
    return _photos(library, query, limit)


def _nearest(library: Library, name: str, vector: Floats32, limit: int, columns: Sequence[str], where: str = "") -> Any:
    query = library.tables[name].search(vector, vector_column_name="vector").distance_type("cosine")
    query = query.nprobes(_PROBES).refine_factor(_REFINED).select([*columns, "_distance"])
    with working(library.place):
        return (query.where(where, prefilter=True) if where else query).limit(limit).to_arrow()


def _photos(library: Library, query: Query, limit: int) -> list[Hit]:
    where = f"array_has(words, {_quoted(query.word)})" if query.word else ""
    vector = query.vector if query.query is None else query.query
    rows = _nearest(library, PHOTOS, vector, limit, ["id", "name"], where).to_pylist()
    places = _places(library, query, [row["id"] for row in rows])
    hits = []
    for row in rows:
        box, name = places.get(row["id"], (None, ""))
        hits.append(Hit(row["name"], image_id_of(row["name"]), box, 1 - row["_distance"], name))
    return hits


def _places(library: Library, query: Query, ids: Sequence[int]) -> dict[int, tuple[Box4, str]]:
    """The region of each photo that is most likely meant: a thing that is named and surely found, else the one that is
    most like the query."""
    best: dict[int, tuple[bool, float, Box4, str]] = {}
    for region in _regions_of(library, ids):
        named = region.name in query.names and region.score >= _SURELY_FOUND
        like = float(region.vector @ query.vector)
        fits = region.score + _LARGE * math.sqrt(_area(region.box_xyxy)) if named else like
        before = best.get(region.photo)
        if before is None or (named, fits) > before[:2]:
            best[region.photo] = (named, fits, region.box_xyxy, region.name)
    return {photo: (box, name) for photo, (_, _, box, name) in best.items()}


@dataclass(frozen=True, slots=True)
class _Candidate:
    photo: int
    name: str
    box_xyxy: Box4
    score: float
    vector: Floats32


def _regions_of(library: Library, ids: Sequence[int]) -> list[_Candidate]:
    if not ids:
        return []
    columns = ["photo", "name", "score", "box", "vector"]
    rows = library.tables.columns(REGIONS, columns, one_of("photo", ids))
    return _candidates(rows, rows["score"].to_pylist())


def _candidates(rows: Any, scores: Any) -> list[_Candidate]:
    size = rows.schema.field("vector").type.list_size
    vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(rows.num_rows, size).astype(np.float32)
    columns = (rows["photo"].to_pylist(), rows["name"].to_pylist(), rows["box"].to_pylist())
    listed = zip(*columns, scores, vectors, strict=True)
    return [_Candidate(photo, name, tuple(box), float(score), vector) for photo, name, box, score, vector in listed]


def _regions(library: Library, query: Query, limit: int) -> list[Hit]:
    placed = query.near is not None or query.trace is not None
    pool = limit * (_POOL if placed else _PER_PHOTO)
    where = one_of("photo", _with_word(library, query.word)) if query.word else ""
    rows = _nearest(library, REGIONS, query.vector, pool, ["photo", "name", "box", "vector"], where)
    found = _candidates(rows, 1 - rows["_distance"].to_numpy())
    names = _names(library, {one.photo for one in found})
    found = [one for one in found if one.photo in names]
    if query.trace is not None:
        around = _bounds(query.trace)
        found = [replace(one, score=one.score + _PLACE * _iou(one.box_xyxy, around)) for one in found]
    if query.near is not None:
        found = _beside(library, found, query.near)
    best: dict[int, _Candidate] = {}
    for one in sorted(found, key=lambda one: -one.score):
        best.setdefault(one.photo, one)
    chosen = list(best.values())[:limit]
    places = {} if placed else _places(library, query, [one.photo for one in chosen])
    hits = []
    for one in chosen:
        box, name = places.get(one.photo, (one.box_xyxy, one.name))
        hits.append(Hit(names[one.photo], image_id_of(names[one.photo]), box, one.score, name))
    return hits


def _with_word(library: Library, word: str) -> list[int]:
    """The ids of photos with a thing of this name. No id is negative: -1 is that of no photo."""
    return [-1, *library.tables.columns(PHOTOS, ["id"], f"array_has(words, {_quoted(word)})")["id"].to_pylist()]


def _names(library: Library, ids: set[int]) -> dict[int, str]:
    """The names of photos by their ids, without those that are gone."""
    if not ids:
        return {}
    where = one_of("id", sorted(ids))
    return {row["id"]: row["name"] for row in library.tables.columns(PHOTOS, ["id", "name"], where).to_pylist()}


def _beside(library: Library, found: Sequence[_Candidate], near: Floats32) -> list[_Candidate]:
    """Candidates by how well both fit, themselves and the best of the other regions of their photo: how like that is,
    less how far away."""
    others: dict[int, list[_Candidate]] = {}
    for region in _regions_of(library, sorted({one.photo for one in found})):
        others.setdefault(region.photo, []).append(region)
    ranked = []
    for one in found:
        rest = [other for other in others.get(one.photo, ()) if _iou(one.box_xyxy, other.box_xyxy) < _SAME]
        if rest:
            fits = max(float(other.vector @ near) - _gap(one.box_xyxy, other.box_xyxy) for other in rest)
            ranked.append(replace(one, score=math.sqrt(max(one.score, 0) * max(fits, 0))))
    return ranked


def _said(library: Library, query: Query, limit: int) -> list[Hit]:
    columns = ["image_id", "who", "text", "start_s", "box"]
    rows = _nearest(library, SAID, query.vector, 4 * limit, columns).to_pylist()
    wanted = sorted({row["image_id"] for row in rows})
    where = f"image_id in ({', '.join(_quoted(one) for one in wanted)})"
    photos = library.tables.columns(PHOTOS, ["image_id", "name"], where).to_pylist() if wanted else []
    names = {row["image_id"]: row["name"] for row in photos}
    hits: dict[str, Hit] = {}
    for row in rows:
        image_id, box = row["image_id"], row["box"]
        place = None if box is None else (box[0], box[1], box[2], box[3])
        hit = Hit(
            names.get(image_id, ""), image_id, place, 1 - row["_distance"], "", row["text"], row["who"], row["start_s"]
        )
        hits.setdefault(image_id, hit)
    return list(hits.values())[:limit]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _bounds(trace: Trace) -> Box4:
    """The box around a trace, on the photo and of some size."""
    left, top, right, bottom = np.clip(trace.bounds_xyxy, 0, 1).tolist()
    x, y = (left + right) / 2, (top + bottom) / 2
    wide, high = max(right - left, _LEAST_SIDE) / 2, max(bottom - top, _LEAST_SIDE) / 2
    return (x - wide, y - high, x + wide, y + high)


def _iou(a: Box4, b: Box4) -> float:
    """Intersection over union."""
    wide, high = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
    if wide <= 0 or high <= 0:
        return 0.0
    return wide * high / (_area(a) + _area(b) - wide * high)


def _area(box: Box4) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _gap(a: Box4, b: Box4) -> float:
    """How far apart two boxes are, in fractions of the photo; 0 if they touch."""
    apart = [max(0.0, max(a[i], b[i]) - min(a[i + 2], b[i + 2])) for i in (0, 1)]
    return math.hypot(*apart)
