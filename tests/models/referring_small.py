"""Rows of horses, made up: which one an expression means follows from their places and their colours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saywhere.build.referring import LookedPhoto
from saywhere.build.referring_texts import NOUN, TRUE, Said, mirrored
from saywhere.models.patchioner.candidates import COLOURS, WHOLE, Candidates

SIZE = 6
NAMES = ("horse", "cup")
COLOUR_NAMES = ("red", "green", "blue")


def reader(texts: Sequence[str]) -> np.ndarray:
    """A text is what it names, and nothing else."""
    rows = np.array([[float("horse" in text), float("cup" in text), *[0.1] * (SIZE - 2)] for text in texts], np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def row_of_horses(rng: np.random.Generator, count: int) -> Candidates:
    """Horses side by side, each of another colour, in no order, and the whole photo."""
    wide = 1 / max(count, 1)
    left = (np.arange(count) + rng.uniform(0.1, 0.3, count)) * wide
    boxes = np.stack([left, rng.uniform(0, 0.3, count), left + 0.6 * wide, rng.uniform(0.6, 1, count)], axis=1)
    order = rng.permutation(count)
    boxes = np.concatenate([boxes[order], [[0, 0, 1, 1]]]).astype(np.float32)
    colours = np.full((count + 1, COLOURS // 3, 3), 0.3, np.float32)
    for number, colour in enumerate(rng.permutation(len(COLOUR_NAMES))[:count]):
        colours[number, :, colour] = 0.9
    vectors = np.concatenate([reader(["horse"] * count + ["photo"])[:count], np.zeros((1, SIZE), np.float32)])
    scores = np.array([*rng.uniform(0.5, 1, count), 0], np.float32)
    names = ("horse",) * count + (WHOLE,)
    return Candidates(boxes, names, scores, vectors, None, colours.reshape(count + 1, -1))


def made_photo(number: int, split: str) -> LookedPhoto:
    """Two or three horses: "left horse", "second horse from the right", "red horse", and a cup that is not there."""
    rng = np.random.default_rng(number)
    offered = row_of_horses(rng, int(rng.integers(2, 4)))
    horses = offered.boxes_xyxy[:-1]
    across = np.argsort(horses[:, 0])
    painted = np.asarray(offered.colours).reshape(len(offered), -1, 3)[:-1, 0].argmax(axis=1)
    meant = {
        "left horse": across[0],
        "right horse": across[-1],
        "second horse from the right": across[-2],
        "second horse from the left": across[1],
        **{f"{COLOUR_NAMES[colour]} horse": place for place, colour in enumerate(painted)},
    }
    said = [
        Said(text, mirrored(text), TRUE, tuple(horses[place].tolist()), "unc_val", "horse")
        for text, place in meant.items()
    ]
    said.append(Said("left cup", "right cup", NOUN))
    vectors, turned = (reader([getattr(one, name) for one in said]) for name in ("text", "mirror"))
    return LookedPhoto(f"{number:012}", split, offered, tuple(said), vectors, turned, frozenset(["horse"]), (), False)


def made_photos(train: int, others: int) -> list[LookedPhoto]:
    splits = ["train"] * train + ["validation"] * others + ["test"] * others
    return [made_photo(number, split) for number, split in enumerate(splits)]
