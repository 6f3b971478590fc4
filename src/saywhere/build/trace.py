"""The folder that the small body of TraceVLM learns from, of a COCO store and what the eye's trunk gave.

FOLDER/photos           a store: what the eye sees of each photo, window by window, and its true things
FOLDER/train.jsonl, FOLDER/validation.jsonl   talks about them, see `saywhere.models.tracevlm.examples`
FOLDER/tokenizer.json   pieces of words, learnt from the talks

Photos that finding and answering are measured on stay out, beside those that the store never held.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saywhere.atomic import write_atomic
from saywhere.build.answer_questions import photo_split
from saywhere.build.coco import KIND
from saywhere.build.referring_texts import split_of_photo
from saywhere.build.trace_photos import look_at_photos, see_photos
from saywhere.build.trace_talks import ToldPhoto, talks_of
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Progress
from saywhere.models.answerer.data import TEST
from saywhere.models.tracevlm.examples import Instruction, InstructionFile, save_instructions
from saywhere.models.tracevlm.small_input import READ_POINTS
from saywhere.models.tracevlm.small_model import TOKENIZER
from saywhere.models.tracevlm.small_photos import PHOTOS, PHOTOS_KIND
from saywhere.models.tracevlm.small_tokens import SmallTokenizer
from saywhere.models.tracevlm.task import TRAIN, VALIDATION
from saywhere.models.tracevlm.trajectory import Trajectory
from saywhere.store import Row, Store

_VALIDATION = 0.02
_KINDS = ("captions", "referring", "questions")


@dataclass(frozen=True, slots=True)
class TraceScale:
    """photos: at most; those of which people told most come first. talks: about each. pieces: of words."""

    photos: int = 20_000
    talks: int = 4
    pieces: int = 6000
    seed: int = 0
    bf16: bool = True


@dataclass(frozen=True, slots=True)
class BuiltTrace:
    """How much there is. absent: photos that have no features and were left out."""

    photos: int
    train: int
    validation: int
    absent: int


@dataclass(frozen=True, slots=True)
class MoreTalks:
    """Talks that were made elsewhere, such as by `saywhere build riln --instructions`. folder: with train.jsonl.
    photos: with the photos that they name. most: talks at most; longest: tokens of one, by a rough count."""

    folder: Path
    photos: Path
    most: int = 1500
    longest: int = 220


def build_trace(
    coco: Store,
    features: Path,
    eye: Path,
    out: Path,
    scale: TraceScale,
    progress: Progress,
    more: MoreTalks | None = None,
) -> BuiltTrace:
    """Write the folder, or go on with it. features: of `saywhere build eye`. eye: the folder of a trained one."""
    if coco.kind != KIND:
        raise InvalidFile(coco.folder, f"holds {coco.kind}, not {KIND}", "make one with `saywhere build coco`")
    photos = chosen_photos(coco, scale.photos)
    absent = see_photos(coco, features, eye, photos, out, progress, bf16=scale.bf16)
    others = [] if more is None else talks_of_others(more, out, progress)
    train, validation = write_talks(coco, out, scale, progress, others)
    return BuiltTrace(len(photos) - absent, train, validation, absent)


def chosen_photos(coco: Store, most: int) -> list[str]:
    """Photos to learn from: those with two or more kinds of texts first, in an order that never changes."""
    order = {}
    for row in coco:
        kinds = sum(bool(row[name]) for name in _KINDS)
        if kinds and may_teach(row):
            order[row.key] = (-min(kinds, 2), hashlib.sha256(f"trace {row.key}".encode()).hexdigest())
    if not order:
        raise InvalidFile(coco.folder, "has no photo that people told of and that is in no test")
    return sorted(order, key=order.__getitem__)[:most]


def may_teach(row: Row) -> bool:
    """Whether a photo is in no test: neither of finding, nor of answering, nor of those the eye did not learn from."""
    return split_of_photo(row.key, row["split"]) != "test" and photo_split(row) != TEST


def talks_of_others(more: MoreTalks, out: Path, progress: Progress) -> list[Instruction]:
    """Talks that are short enough, with what their photos show put into out/photos."""
    short = [talk for talk in InstructionFile(more.folder / TRAIN) if _tokens(talk) <= more.longest]
    kept = _mixed(short, 0)[: more.most]
    unread = set(look_at_photos(more.photos, sorted({name for talk in kept for name in talk.images}), out, progress))
    return [talk for talk in kept if not unread.intersection(talk.images)]


def _tokens(talk: Instruction) -> int:
    """About how many tokens a talk has: two for each point that is read, and a piece for four letters."""
    parts = [part for turn in talk.turns for part in turn.parts]
    points = sum(2 * min(len(part.trace), READ_POINTS) for part in parts if isinstance(part, Trajectory))
    return points + sum(len(part) // 4 + 1 for part in parts if isinstance(part, str))


def write_talks(
    coco: Store, out: Path, scale: TraceScale, progress: Progress, others: Sequence[Instruction] = ()
) -> tuple[int, int]:
    """Write the talks about out/photos and the pieces of their words; how many talks there are to learn and to
    validate with."""
    keys = [row.key for row in Store(out / PHOTOS, PHOTOS_KIND) if row.key in coco]
    held = {key for key in keys if _share(key) < _VALIDATION}
    parts = ((TRAIN, [key for key in keys if key not in held]), (VALIDATION, sorted(held)))
    counts = []
    for name, some in parts:
        talks = [*_talks(coco, some, scale, progress), *(others if name == TRAIN else ())]
        counts.append(save_instructions(out / name, _mixed(talks, scale.seed)))
    tokenizer = SmallTokenizer.learnt(_texts(InstructionFile(out / TRAIN)), scale.pieces)
    with write_atomic(out / TOKENIZER) as file:
        file.write(tokenizer.to_json().encode())
    return counts[0], counts[1]


def _talks(coco: Store, keys: Sequence[str], scale: TraceScale, progress: Progress) -> Iterator[Instruction]:
    for number, key in enumerate(keys, 1):
        place = int.from_bytes(hashlib.sha256(f"{scale.seed} {key}".encode()).digest()[:8], "big")
        rng = np.random.default_rng(place)
        other = coco.by_key(keys[int(rng.integers(len(keys)))])
        yield from talks_of(ToldPhoto.of_row(coco.by_key(key), key, other), scale.talks, rng)
        progress("making talks", number, len(keys))


def _mixed(talks: list[Instruction], seed: int) -> list[Instruction]:
    order = np.random.default_rng(seed).permutation(len(talks))
    return [talks[place] for place in order.tolist()]


def _texts(talks: Iterable[Instruction]) -> Iterator[str]:
    for talk in talks:
        for turn in talk.turns:
            yield from (part for part in turn.parts if isinstance(part, str))


def _share(key: str) -> float:
    """A number in [0, 1) that is always the same for a photo."""
    return int.from_bytes(hashlib.sha256(f"trace validation {key}".encode()).digest()[:8], "big") / 2**64
