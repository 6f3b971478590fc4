"""A small body of a few thousand random parameters, and data for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from saywhere.core import Box, Trace
from saywhere.core.types import Floats32
from saywhere.models.tracevlm.config import TraceVlmConfig
from saywhere.models.tracevlm.examples import Instruction, answered, asked, save_instructions
from saywhere.models.tracevlm.small_config import SmallConfig
from saywhere.models.tracevlm.small_model import TOKENIZER, SmallTraceVLM
from saywhere.models.tracevlm.small_photos import PHOTOS, PHOTOS_FIELDS, PHOTOS_KIND, PhotoFeatures
from saywhere.models.tracevlm.small_tokens import SmallTokenizer
from saywhere.models.tracevlm.trajectory import Trajectory
from saywhere.store import StoreWriter

STATE = 6
TEXTS = ("a dog on a couch", "Describe the image along this trajectory: ", "Put a box around this: ", "what is this?")


def tokenizer() -> SmallTokenizer:
    return SmallTokenizer.learnt(TEXTS, 280)


def model(seed: int = 0, *, blocks: int = 1) -> SmallTraceVLM:
    """All but γ is random."""
    tokens = tokenizer()
    small = SmallConfig(len(tokens), 16, 2, 2, 2, STATE, 5, 8, 256, 0.0)
    config = TraceVlmConfig(blocks=blocks, heads=2, expansion=2, code=8, mask_layers=0)
    return SmallTraceVLM(config, small, tokens, seed).eval()


def windows(seed: int) -> Floats32:
    return np.random.default_rng(seed).normal(size=(101, STATE)).astype(np.float32)


def photo(seed: int = 0, things: int = 2) -> PhotoFeatures:
    boxes = np.array([(0.1, 0.2, 0.5, 0.9), (0.6, 0.1, 0.9, 0.4), (0.0, 0.0, 0.2, 0.2)], np.float32)[:things]
    return PhotoFeatures(windows(seed), boxes, np.arange(things), np.full(things, 0.5, np.float32))


def trajectory(*points_xy: tuple[float, float]) -> Trajectory:
    return Trajectory(Trace([(x, y, 0.5 * number) for number, (x, y) in enumerate(points_xy)]))


def save_data(folder: Path, photos: int = 4, talks: int = 20) -> None:
    """Photos with two things each; talks that point, find and describe, of different lengths."""
    with StoreWriter(folder / PHOTOS, PHOTOS_KIND, PHOTOS_FIELDS, {}) as writer:
        for number in range(photos):
            seen = photo(number)
            writer.add(str(number), **PhotoFeatures.marked(seen.windows, seen.boxes, seen.classes).row())
    made = []
    for number in range(talks):
        turns = [asked("caption", trajectory((0.1, 0.2), (0.3, 0.1 + 0.02 * number))), answered("a dog on a couch")]
        turns += [asked("box", "a dog"), answered(Box(0.1, 0.2, 0.5, 0.9))] if number % 2 else []
        made.append(Instruction("dialogue", (str(number % photos),), tuple(turns)))
    save_instructions(folder / "train.jsonl", made[: talks - 4])
    save_instructions(folder / "validation.jsonl", made[talks - 4 :])
    (folder / TOKENIZER).write_text(tokenizer().to_json(), encoding="utf-8")
