"""How a writer that learns from text alone is tuned to an eye: captions, moved across the gap between them and it.

    the mean of a photo's captions → moved to where the eye may see such a photo → a decoder → each of the captions

No photo is seen while it learns. What is taken from photos is how the eye's vectors differ from captions' (`GapModel`),
measured on the validation split, from which no eye learns. Likelihood comes first, then reward. Every step goes on
where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from saywhere.build.parts import install_part
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats32, Progress
from saywhere.language.vocabulary import plain_words
from saywhere.learn import train_to_end
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import CAPTIONS, CAPTIONS_KIND, EyeFeatures
from saywhere.models.folder import WEIGHTS
from saywhere.models.patchioner.data import Texts, save_texts
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.gap_model import GapModel
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.store import Store

PART = "decoder"
_TEXTS, _GAP, _START = "texts", "gap", "start"
_WRITTEN_LAST = "config.json"
_FEWEST, _MOST = 5, 25
"""Words of captions."""
_PHRASE_WORDS, _PHRASE_SHARE = 4, 0.25
"""A memory's phrases have at most so many words and are as many as this share of the captions: regions are called by
them."""
_BATCH = 32


@dataclass(frozen=True, slots=True)
class TextWriterScale:
    """steps, reward_steps: of the two trainings. held_out: texts to validate on, at most a tenth. bf16: compute in it,
    which is faster on processors that have it."""

    steps: int = 2500
    reward_steps: int = 1500
    batch: int = 128
    reward_batch: int = 32
    rate: float = 6e-4
    reward_rate: float = 4e-5
    held_out: int = 500
    bf16: bool = True
    seed: int = 0


def build_text_writer(features: Path, model: Path, out: Path, scale: TextWriterScale, progress: Progress) -> Path:
    """Write out/decoder. features: what `saywhere build eye` wrote. model: a seer's folder with an eye, whose text-only
    writer goes on learning and whose memory's phrases are learnt too."""
    start = PrefixDecoder.from_pretrained(model / PART)
    start.save_pretrained(out / _START)
    if not (out / _GAP / _WRITTEN_LAST).exists():
        measure_gap(features, model / "eye", progress).save(out / _GAP)
    if not (out / _TEXTS / "index.json").exists():
        progress("collecting captions", 0, 1)
        write_captions(features, model / "memory.safetensors", start, out / _TEXTS, scale.seed)
    progress("learning from captions", 0, 2)
    likely = out / "likelihood"
    train_to_end(_recipe("patchioner-decoder", out, out / _START / WEIGHTS, start, scale), likely, PrefixDecoder)
    progress("learning by reward", 1, 2)
    tuned = train_to_end(_recipe("patchioner-reward", out, likely, start, scale), out / "reward", PrefixDecoder, "last")
    tuned.save_pretrained(out / PART)
    return out / PART


def install_text_writer(part: Path, model: Path) -> None:
    """Put it into a model's folder, in place of the text-only writer that was there. What the eye sees of whole photos
    is read as it is, which it learnt; vectors of regions, which hold names too, go by the memory."""
    PrefixDecoder.from_pretrained(part)
    install_part(part, model, scene_gap="direct")


def measure_gap(features: Path, eye: Path, progress: Progress) -> GapModel:
    """How what an eye sees of the validation photos differs from the mean of what people said of them."""
    photos, learner = EyeFeatures(features, "validation"), EyeLearner.from_pretrained(eye)
    told = [number for number in range(len(photos)) if len(photos.caption_vectors(number))]
    if len(told) < 2:
        raise InvalidFile(features, f"has {len(told)} validation photos with captions, too few to measure a gap")
    seen = []
    for first in range(0, len(told), _BATCH):
        some = told[first : first + _BATCH]
        with torch.inference_mode():
            seen.append(learner(torch.from_numpy(np.stack([photos[number].inputs for number in some]))).whole)
        progress("measuring the gap", first + len(some), len(told))
    said = np.stack([_mean(photos.caption_vectors(number)) for number in told])
    images = torch.nn.functional.normalize(torch.cat(seen).float(), dim=-1).numpy()
    return GapModel.fit(said, images)


def write_captions(features: Path, memory: Path, start: PrefixDecoder, out: Path, seed: int) -> int:
    """Write the training photos' captions, each with the mean vector of its photo's, and the phrases of a memory; how
    many texts there are."""
    photos, told = EyeFeatures(features, "train"), Store(features / CAPTIONS, CAPTIONS_KIND)
    texts: list[tuple[str, Floats32, int]] = []
    for number in range(len(photos)):
        vectors, key = photos.caption_vectors(number), photos.key(number)
        if len(vectors) and key in told:
            plain = (" ".join(plain_words(text)) for text in told.by_key(key)["captions"])
            mean = _mean(vectors)
            texts += [(text, mean, number) for text in plain if _FEWEST <= len(text.split()) <= _MOST]
    if not texts:
        raise InvalidFile(features, "has no training photo with captions")
    bank = MemoryBank.load(memory)
    phrases = [
        (" ".join(plain_words(sentence)), np.asarray(bank.vectors[row], np.float32), len(photos) + row)
        for row, sentence in enumerate(bank.sentences)
        if 1 <= len(plain_words(sentence)) <= _PHRASE_WORDS
    ]
    again = round(_PHRASE_SHARE * len(texts) / len(phrases)) if phrases else 0
    every = list(chain(texts, *[phrases] * max(again, 1)))
    order = np.random.default_rng(seed).permutation(len(every)).tolist()
    shuffled = [every[number] for number in order]
    save_texts(
        out,
        [text for text, _, _ in shuffled],
        np.stack([vector for _, vector, _ in shuffled]),
        start.vocabulary,
        {"features": photos.fingerprint},
        groups=[group for _, _, group in shuffled],
    )
    return len(shuffled)


def _recipe(task: str, out: Path, begin: Path, start: PrefixDecoder, scale: TextWriterScale) -> Recipe:
    """How the decoder learns, by likelihood or by reward."""
    rewarded, texts = task == "patchioner-reward", len(Texts(out / _TEXTS))
    steps = scale.reward_steps if rewarded else scale.steps
    shape = {name: getattr(start.config, name) for name in ("width", "layers", "heads", "feed_forward", "prefix")}
    model: dict[str, Any] = {**shape, "max_words": start.config.max_words, "gap": str(out / _GAP)}
    model["name_pieces"] = _PHRASE_WORDS
    model |= {"samples": 6, "sample_temperature": 0.5, "dropout": 0.0} if rewarded else {"smoothing": 0.05}
    if rewarded:
        model["sample_words"] = min(20, start.config.max_words)
    table = {
        "name": "captions from text alone" + (", rewarded" if rewarded else ""),
        "task": task,
        "seed": scale.seed,
        "model": model,
        "data": {"folder": str(out / _TEXTS), "held_out": min(scale.held_out, texts // 10 + 1)},
        "train": {
            "steps": steps,
            "batch_size": scale.reward_batch if rewarded else scale.batch,
            "lr": scale.reward_rate if rewarded else scale.rate,
            "optimizer": "adamw",
            "weight_decay": 0.0 if rewarded else 0.01,
            "clip_norm": 1.0,
            "ema_decay": 0.99 if rewarded else 0.998,
            "precision": "bf16" if scale.bf16 else "fp32",
            "init_from": str(begin),
        },
        "schedule": {"kind": "cosine", "warmup_steps": max(1, steps // 25), "floor": 0.05},
        "validate": {"metric": "loss", "every_steps": max(1, steps // 5)},
        "checkpoint": {"every_steps": max(1, steps // 10)},
    }
    return parse_recipe(table, str(table["name"]))


def _mean(vectors: Floats32) -> Floats32:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    mean = (vectors / np.maximum(lengths, 1e-12)).mean(axis=0)
    unit: Floats32 = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
    return unit
