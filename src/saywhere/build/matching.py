"""How the part of a model that tells photos apart is made: from what the eye's trunk gave, an eye, and captions.

    windows of hidden states, things found, second looks, captions token by token
        → a network trained by recipes/matching.toml → matching/

Every step goes on where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from saywhere.build.eye_seen import EyeStates, SeenStore, write_seen
from saywhere.build.parts import install_part
from saywhere.core.types import Progress
from saywhere.language.embed import MiniLM, open_token_encoder
from saywhere.learn import train_to_end
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.models.answerer.network import AnswerNet
from saywhere.models.eye.features import AUXILIARY, CAPTIONS, CAPTIONS_KIND, KIND, PHOTOS
from saywhere.models.patchioner.matching import Matcher, windows_of
from saywhere.models.patchioner.matching_task import (
    QUERY_START,
    QUERY_TEXTS,
    QUERY_TEXTS_FIELDS,
    QUERY_TEXTS_KIND,
    WINDOWS_FIELDS,
    WINDOWS_KIND,
    MatchTraining,
)
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.queries import QueryNet, states_before
from saywhere.models.patchioner.seer_config import MEMORY, read_config
from saywhere.store import Store, StoreWriter

WINDOWS, QUERIES, RUN, PART = "windows", "queries", "run", "matching"
"""What a build's folder holds: `PART` is for the model, the rest may be thrown away."""

_PHOTOS_TOGETHER = 256


@dataclass(frozen=True, slots=True)
class MatchingScale:
    """steps, batch: of the training. rate, query_rate: of the network, and of the layers that read texts. query_layers:
    how many of the text encoder's layers learn to read texts that are to find photos; 0: none, which does as well, see
    docs/log.md. statements: whether photos without captions teach, too. start: the folder of a part to begin with.
    bf16: compute in it, which is three times faster on processors that have it."""

    steps: int = 2000
    batch: int = 256
    rate: float = 6e-4
    query_rate: float = 1e-4
    query_layers: int = 0
    statements: bool = False
    start: Path | None = None
    bf16: bool = True
    seed: int = 0


def build_matching(
    features: Path,
    eye: Path,
    out: Path,
    scale: MatchingScale,
    progress: Progress,
    encoder: MiniLM | None = None,
) -> Path:
    """Write out/matching, a part of a model. features: what `saywhere build eye` wrote. eye: a trained one's folder.
    encoder: reads captions; the one that search will read texts with by default."""
    see_windows(features, eye, out / WINDOWS, progress, bf16=scale.bf16, statements=scale.statements)
    if scale.query_layers:
        with torch.autocast("cpu", torch.bfloat16, enabled=scale.bf16):
            read_captions(features, out / QUERIES, encoder or open_token_encoder(), scale.query_layers, progress)
    progress("learning to tell photos apart", 0, 1)
    learnt = train_to_end(matching_recipe(features, out, scale), out / RUN, MatchTraining)
    learnt.save_pretrained(out / PART)
    return out / PART


def see_windows(
    features: Path, eye: Path, out: Path, progress: Progress, *, bf16: bool = True, statements: bool = False
) -> int:
    """Write windows of hidden states of all photos with captions, or go on with it; how many were left out. statements:
    also of those of which questions and answers say something."""

    def row_of(_photo: str, seen: EyeStates) -> dict[str, Any]:
        windows, centres = windows_of(seen.states)
        return {"windows": windows.astype(np.float16), "centres": centres, "contrast": seen.contrast}

    fields = ("caption_vectors", "statement_vectors") if statements else ("caption_vectors",)
    photos = [
        row.key
        for row in Store(features / PHOTOS, KIND)
        if any(row[name] is not None and len(row[name]) for name in fields)
    ]
    target = SeenStore(out, WINDOWS_KIND, WINDOWS_FIELDS, "seeing windows")
    return write_seen(features, eye, photos, target, row_of, progress, bf16=bf16)


def read_captions(features: Path, out: Path, encoder: MiniLM, layers: int, progress: Progress) -> None:
    """Write what an encoder's layers but the last ones make of every caption, or go on with it, and a network of these
    last layers to begin with."""
    start = QueryNet.of(encoder.network, layers)
    start.save_pretrained(out / QUERY_START)
    told = Store(features / CAPTIONS, CAPTIONS_KIND)
    about = {"encoder": encoder.fingerprint, "layers": layers}
    with StoreWriter(out / QUERY_TEXTS, QUERY_TEXTS_KIND, QUERY_TEXTS_FIELDS, about) as writer:
        captioned = [row.key for row in told if row["captions"]]
        waiting = [key for key in captioned if key not in writer]
        done = len(captioned) - len(waiting)
        for first in range(0, len(waiting), _PHOTOS_TOGETHER):
            rows = [told.by_key(key) for key in waiting[first : first + _PHOTOS_TOGETHER]]
            states = iter(states_before(encoder, [text for row in rows for text in row["captions"]], start.config))
            for row in rows:
                own = list(islice(states, len(row["captions"])))
                writer.add(row.key, states=np.concatenate(own).astype(np.float16), tokens=[len(one) for one in own])
            progress("reading captions", done + first + len(rows), len(captioned))


def install_matching(part: Path, model: Path, encoder: MiniLM | None = None) -> None:
    """Put a trained part into a model's folder, in place of one that was there, and name it in seer.json. Sentences of
    the model's memory are read as the part has learnt to. encoder: as for `build_matching`."""
    answers, matcher = read_config(model).answers, Matcher.from_pretrained(part)
    read_by_others = bool(answers) and AnswerNet.from_pretrained(model / answers).second is not None
    install_part(part, model, matching=part.name, auxiliary=matcher.reads_auxiliary or read_by_others)
    if matcher.reads_queries:
        bank = MemoryBank.load(model / MEMORY)
        queries = matcher.queries(bank.sentences, encoder or open_token_encoder())
        bank.with_queries(queries).save(model / MEMORY, int8=True)


def matching_recipe(features: Path, prepared: Path, scale: MatchingScale) -> Recipe:
    """recipes/matching.toml for these folders. prepared: with windows and queries in it."""
    often = max(1, scale.steps // 10)
    table: dict[str, Any] = {
        "name": "telling photos apart",
        "task": "patchioner-matching",
        "seed": scale.seed,
        "data": {
            "folder": str(features),
            "windows": str(prepared / WINDOWS),
            "auxiliary": (features / AUXILIARY).is_dir(),
            "statements": scale.statements,
            **({"queries": str(prepared / QUERIES)} if scale.query_layers else {}),
            **({} if scale.start is None else {"start": str(scale.start)}),
        },
        "train": {
            "steps": scale.steps,
            "batch_size": scale.batch,
            "lr": scale.rate,
            "optimizer": "adamw",
            "weight_decay": 0.05,
            "decay_norms_and_biases": False,
            "clip_norm": 2.0,
            "ema_decay": 0.997,
            "precision": "bf16" if scale.bf16 else "fp32",
            "groups": [{"modules": ["network.query"], "lr": scale.query_rate}] if scale.query_layers else [],
        },
        "schedule": {"kind": "cosine", "warmup_steps": max(1, scale.steps // 30), "floor": 0.02},
        "validate": {"metric": "r1", "mode": "max", "every_steps": often},
        "checkpoint": {"every_steps": often},
    }
    return parse_recipe(table, "matching")
