"""The recipe of `saywhere-base`: from photos with captions to the folder that the package ships.

1. look      every photo once: the mean of its patches, and what the detector found in it
2. align     ridge regression of features and tags onto the mean vector of a photo's captions (`ridge`)
3. gap       out-of-fold vectors of the photos, and the model of how they differ from their captions' (`gap_model`)
4. memory    captions, and the phrases that they are made of
5. decoder   learnt from text alone (captions and phrases), on vectors moved across that gap
6. and a second one, tuned on what photos and boxes really look like: by likelihood, then by reward (`learn.reward`)
Each stage leaves its files in the work folder and is not done again.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch

from saywhere.atomic import write_atomic
from saywhere.build.base_photos import PhotoSet, coco_set, flickr_set, look_at, look_at_boxes
from saywhere.build.held_out import held_out
from saywhere.build.memory import folded
from saywhere.build.region_texts import ClassBox, box_names, read_class_boxes
from saywhere.core import InvalidValue
from saywhere.core.types import Floats32, Progress
from saywhere.language.coco_aliases import coco_aliases
from saywhere.language.embed import TextEncoder
from saywhere.language.nouns import region_phrases
from saywhere.language.vocabulary import Vocabulary
from saywhere.learn import train_to_end
from saywhere.learn.recipe import parse_recipe
from saywhere.models.folder import save_part
from saywhere.models.patchioner.alignment import LinearAlignment
from saywhere.models.patchioner.data import save_texts
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.eyes import Blend
from saywhere.models.patchioner.gap_model import GapModel
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.ridge import fit_ridge, out_of_fold
from saywhere.models.patchioner.seer import save_config
from saywhere.models.patchioner.tags import Tags
from saywhere.vision import Encoder
from saywhere.vision.detector import Detector

_WORD = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")
_CAPTIONS = 5
_FEWEST_SIGHTINGS = 2
ENCODER, INPUT_PX = "efficientnet-lite0+efficientnet-lite2", 448
_FLOOR = 1e-2
"""Added to each feature's standard deviation, as a share of that of all: rare features would be blown up otherwise."""


@dataclass(frozen=True, slots=True)
class BaseSettings:
    """penalty: of the ridge. tag_scale: how much cheaper the tags' weights are than the features'.
    phrases: at most, the most frequent, of those there twice; phrase_share: of all texts that a decoder learns from.
    rate: the decoder's learning rate; start: a safetensors file with the weights of an earlier one with the same words.
    steps, seen_steps, reward_steps: of the decoders, by likelihood from texts, then from pairs, then by reward; batch,
    reward_batch: texts a step. held_out: texts that each is validated on. width, layers: their shape. vocabulary: words
    at most, each seen `min_count` times."""

    penalty: float = 30_000.0
    tag_scale: float = 3.0
    phrases: int = 8000
    phrase_share: float = 0.2
    steps: int = 4000
    rate: float = 1e-3
    start: Path | None = None
    seen_steps: int = 400
    reward_steps: int = 100
    batch: int = 96
    reward_batch: int = 32
    held_out: int = 500
    width: int = 256
    layers: int = 4
    vocabulary: int = 8000
    min_count: int = 5
    seed: int = 0


def build_base(
    sets: Sequence[PhotoSet],
    more_texts: Sequence[str],
    bank_texts: Sequence[Sequence[str]],
    out: Path,
    work: Path,
    encoder: Encoder,
    detector: Detector,
    text_encoder: TextEncoder,
    settings: BaseSettings,
    progress: Progress,
    boxes: Sequence[ClassBox] = (),
) -> None:
    """Make the folder `out`.

    boxes: on photos of the first set, for the second decoder. more_texts: for the decoders alone. bank_texts: captions
    of photos that are not here, for the memory and, half of the time, for the decoders: the style they shall write in,
    with those of the first set.
    """
    features, tags = look_at(sets, work, encoder, detector, progress)
    said = [s.captions[p.stem][:_CAPTIONS] for s in sets for p in s.photos]
    _check_captions(said)
    flat = [text for texts in said for text in texts]
    vectors = kept_vectors("photo captions", flat, work, text_encoder, progress).reshape(len(said), _CAPTIONS, -1)
    counts = np.concatenate([np.full(len(s.photos), s.weight, dtype=np.float32) for s in sets])
    photo_vectors = align(features, tags, vectors, counts, detector.names, out, text_encoder, settings)
    # The first set is what the model shall see and write like; other photos lie elsewhere from their captions.
    first = len(sets[0].photos)
    gap = GapModel.fit(
        vectors[:first].reshape(first * _CAPTIONS, -1), np.repeat(photo_vectors[:first], _CAPTIONS, axis=0)
    )
    gap.save(work / "gap")
    own = [sets[0].captions[path.stem][:_CAPTIONS] for path in sets[0].photos]
    style = [text for texts in (*own, *bank_texts) for text in texts]
    style_groups = [group for group, texts in enumerate((*own, *bank_texts)) for _ in texts]
    phrases = _phrases(style, work, settings, progress)
    style_vectors = kept_vectors("sentences of the memory", style, work, text_encoder, progress)
    phrase_vectors = kept_vectors("phrases of the memory", phrases, work, text_encoder, progress)
    remember(style, style_vectors, phrases, phrase_vectors, text_encoder, out / "memory.safetensors")
    more_vectors = kept_vectors("more texts", list(more_texts), work, text_encoder, progress)
    words = Vocabulary.of_words(
        [*map(plain, style)] * 3 + [*map(plain, more_texts)], settings.vocabulary, settings.min_count
    )
    about = {"encoder": dict(text_encoder.fingerprint)}
    first_free = len(own) + len(bank_texts)
    parts = (style, style_vectors, style_groups), (phrases, phrase_vectors), (list(more_texts), more_vectors)
    _save_learning(work / "texts", *parts, first_free, settings.phrase_share, words, about)
    called = box_names(boxes, {path.stem: sets[0].captions[path.stem] for path in sets[0].photos}) if boxes else []
    region_vectors = look_at_boxes(
        called, sets[0].photos, out, work, encoder, detector, Blend(**shipped_config()["blend"]), progress
    )
    counts_each = [_CAPTIONS] * len(said) + [len(box.texts) for box in called]
    save_texts(
        work / "pairs",
        [plain(text) for text in (*flat, *(text for box in called for text in box.texts))],
        np.repeat(np.concatenate([photo_vectors, region_vectors]), counts_each, axis=0),
        words,
        about,
        groups=np.repeat(np.arange(len(counts_each)), counts_each),
    )
    _decoders(out, work, settings)
    save_config(out, shipped_config())


def build_from_folder(
    data: Path,
    out: Path,
    work: Path,
    encoder: Encoder,
    detector: Detector,
    text_encoder: TextEncoder,
    settings: BaseSettings,
    progress: Progress,
) -> None:
    """`build_base` on a folder with coco_val, flickr8k and text, as the shipped model was made."""
    left_out = held_out("test") | held_out("validation")
    coco = data / "coco_val"
    own, others = coco_set(coco / "photos", coco / "captions_val2017.json", left_out, weight=6.0)
    flickr = flickr_set(data / "flickr8k" / "photos", data / "flickr8k" / "captions.token.txt")
    more: list[str] = []
    # The shorter three of each photo's five captions: the long ones are unlike what a region needs.
    for number in (3, 4, 5):
        with gzip.open(data / "text" / f"train.{number}.en.gz", "rt", encoding="utf-8") as file:
            more += [line.strip() for line in file if line.strip()]
    boxes = [replace(box, image_id=box.image_id.zfill(12)) for box in read_class_boxes(coco / "boxes.json")]
    build_base([own, flickr], more, others, out, work, encoder, detector, text_encoder, settings, progress, boxes)


def plain(text: str) -> str:
    """Lower case, words alone: what the decoder learns to say."""
    return " ".join(_WORD.findall(text.lower()))


def _save_learning(
    folder: Path,
    style: tuple[Sequence[str], Floats32, Sequence[int]],
    phrases: tuple[Sequence[str], Floats32],
    more: tuple[Sequence[str], Floats32],
    first_free: int,
    phrase_share: float,
    words: Vocabulary,
    about: dict[str, Any],
) -> None:
    """Write what the text-only decoder learns from. style: sentences, vectors, groups. first_free: the first number
    that is no group's yet.

    Style and other texts come half and half, whatever their numbers, and phrases as often as phrase_share says: what
    there is less of comes again and again.
    """
    again = max(1, round(len(more[0]) / max(1, len(style[0]))))
    others = again * len(style[0]) + len(more[0])
    share = phrase_share / (1 - phrase_share)
    phrases_again = max(1, round(share * others / len(phrases[0]))) if phrases[0] else 0
    numbers = np.arange(first_free, first_free + len(phrases[0]) + len(more[0])).tolist()
    own, free = numbers[: len(phrases[0])], numbers[len(phrases[0]) :]
    save_texts(
        folder,
        [plain(text) for text in [*style[0]] * again + [*phrases[0]] * phrases_again + [*more[0]]],
        np.concatenate([np.tile(style[1], (again, 1)), np.tile(phrases[1], (phrases_again, 1)), more[1]]),
        words,
        about,
        groups=[*style[2]] * again + own * phrases_again + free,
    )


def remember(
    sentences: Sequence[str],
    vectors: Floats32,
    phrases: Sequence[str],
    phrase_vectors: Floats32,
    text_encoder: TextEncoder,
    path: Path,
) -> None:
    """Write the memory: sentences and phrases that differ in more than case, space and punctuation."""
    kept: dict[str, int] = {}
    texts = [*sentences, *phrases]
    for number, text in enumerate(texts):
        kept.setdefault(folded(text), number)
    rows = sorted(kept.values())
    source = {"sentences": "captions that the model was made with, and phrases out of them"}
    bank = MemoryBank(
        np.concatenate([vectors, phrase_vectors])[rows],
        [" ".join(texts[row].split()) for row in rows],
        text_encoder.fingerprint,
        source,
    )
    bank.save(path)


def _phrases(sentences: Sequence[str], work: Path, settings: BaseSettings, progress: Progress) -> list[str]:
    """What regions may be called: phrases that are there at least twice, the most frequent first; kept in the work
    folder."""
    stored = work / "phrases.txt"
    if stored.exists():
        return stored.read_text(encoding="utf-8").splitlines()
    counted = region_phrases(sentences, progress).most_common()
    frequent = [phrase for phrase, count in counted if count >= _FEWEST_SIGHTINGS and plain(phrase)]
    work.mkdir(parents=True, exist_ok=True)
    with write_atomic(stored) as file:
        file.write("\n".join(frequent[: settings.phrases]).encode())
    return frequent[: settings.phrases]


def align(
    features: Floats32,
    tags: Floats32,
    vectors: Floats32,
    counts: Floats32,
    names: Sequence[str],
    out: Path,
    text_encoder: TextEncoder,
    settings: BaseSettings,
) -> Floats32:
    """Write alignment/, tags/ and classes/; return the photos' out-of-fold vectors, (n, d) of length 1."""
    mean, scale = _standard(features)
    tag_mean, tag_scale = _standard(tags)
    tag_scale = tag_scale / settings.tag_scale
    inputs = np.concatenate([(features - mean) / scale, (tags - tag_mean) / tag_scale], axis=1)
    targets = vectors.mean(axis=1)
    weight, offset = fit_ridge(inputs, targets, settings.penalty, counts)
    alignment = LinearAlignment(mean, scale, targets.shape[1])
    with torch.no_grad():
        alignment.linear.weight.copy_(torch.from_numpy(weight[: len(mean)].T.copy()))
        alignment.linear.bias.copy_(torch.from_numpy(offset))
    alignment.save_pretrained(out / "alignment", half=True)
    tag_weight = weight[len(mean) :] / tag_scale[:, None]
    called = np.stack([_mean_name(text_encoder, coco_aliases().get(name, (name,))) for name in names])
    Tags(tuple(names), -(tag_mean @ tag_weight), tag_weight, called).save_pretrained(out / "tags")
    classes = imagenet_names()
    kept = {"vectors": torch.from_numpy(text_encoder.embed(classes))}
    save_part(out / "classes", "patchioner-class-names", {"names": classes}, kept, half=True)
    return _unit(out_of_fold(inputs, targets, settings.penalty, counts, seed=settings.seed))


def imagenet_names() -> list[str]:
    """What the 1000 classes of ImageNet are called, in their usual order."""
    return (files("saywhere.language") / "imagenet_names.txt").read_text(encoding="utf-8").splitlines()


def shipped_config() -> dict[str, Any]:
    """seer.json of `saywhere-base`. Blend and thresholds were chosen on the validation photos; see its card."""
    return {
        "name": "saywhere-base",
        "encoder": ENCODER,
        "input_px": INPUT_PX,
        "detector": True,
        "class_names": True,
        "gap": "memory",
        "temperature": 0.03,
        "writers": {"supervised": "decoder-supervised", "zero-shot": "decoder"},
        "blend": {"whole": 0.0, "region": 6.0, "classes": 0.3, "doubt": 0.003},
        "least_similarity": 0.65,
        "least_grounding": 0.55,
        "least_missed": 0.65,
        "beams": 1,
        "no_repeat": 3,
        "draws": 16,
    }


def _decoders(out: Path, work: Path, settings: BaseSettings) -> None:
    """Learn a decoder from text alone, tune a copy of it on vectors of photos and boxes, and put both into `out`."""
    across = {"gap": str(work / "gap"), "gap_strength": [0.6, 1.2], "project_rate": 0.3, "temperature": 0.02}
    model = {**across, "bank": 30_000}
    pace = settings.steps, settings.batch, settings.rate
    begun = {} if settings.start is None else {"init_from": str(settings.start)}
    from_text = _run("decoder", "patchioner-decoder", "texts", pace, model, work, settings, begun)
    from_text.save_pretrained(out / "decoder", half=True)
    model = {"noise": [0.0, 0.0], "project_rate": 0.25, "temperature": 0.02}
    likelihood = settings.seen_steps, settings.batch, 3e-4
    start = {"init_from": str(work / "decoder")}
    _run("decoder-seen", "patchioner-decoder", "pairs", likelihood, model, work, settings, start)
    reward = settings.reward_steps, settings.reward_batch, 1e-4
    start = {"init_from": str(work / "decoder-seen")}
    tuned = _run("decoder-supervised", "patchioner-reward", "pairs", reward, model, work, settings, start)
    tuned.save_pretrained(out / "decoder-supervised", half=True)


def _run(
    name: str,
    task: str,
    data: str,
    pace: tuple[int, int, float],
    model: dict[str, Any],
    work: Path,
    settings: BaseSettings,
    start: dict[str, Any] | None = None,
) -> PrefixDecoder:
    """One run of the shared trainer in work/name, on the texts in work/data. pace: steps, batch, learning rate."""
    (steps, batch, rate), width = pace, settings.width
    shape = {"width": width, "layers": settings.layers, "feed_forward": 4 * width, "prefix": 4, "max_words": 30}
    table = {
        "name": f"saywhere-base, {name}",
        "task": task,
        "seed": settings.seed,
        "model": {**shape, **model},
        "data": {"folder": str(work / data), "held_out": settings.held_out},
        "train": {
            "steps": steps,
            "batch_size": batch,
            "lr": rate,
            "betas": [0.9, 0.98],
            "weight_decay": 0.02,
            "clip_norm": 1.0,
            **(start or {}),
        },
        "schedule": {"kind": "cosine", "warmup_steps": min(200, max(1, steps // 20))},
        "validate": {"every_steps": 500},
        "checkpoint": {"every_steps": 100},
    }
    return train_to_end(parse_recipe(table, name), work / name, PrefixDecoder, "last")


def kept_vectors(what: str, texts: list[str], work: Path, text_encoder: TextEncoder, progress: Progress) -> Floats32:
    """(n, d) vectors, kept in the work folder as float16."""
    stored = work / f"{what.replace(' ', '-')}.npy"
    if stored.exists() and len(kept := np.load(stored)) == len(texts):
        return np.asarray(kept, dtype=np.float32)
    vectors = text_encoder.embed(texts, progress=lambda _, done, total: progress(f"embedding {what}", done, total))
    work.mkdir(parents=True, exist_ok=True)
    with write_atomic(stored) as file:
        np.save(file, vectors.astype(np.float16))
    return vectors.astype(np.float32)


def _check_captions(said: Sequence[Sequence[str]]) -> None:
    if short := sum(len(texts) < _CAPTIONS for texts in said):
        raise InvalidValue("captions", f"{short} photos have fewer than {_CAPTIONS}")


def _standard(values: Floats32) -> tuple[Floats32, Floats32]:
    return values.mean(axis=0), values.std(axis=0) + _FLOOR * values.std()


def _mean_name(text_encoder: TextEncoder, aliases: Sequence[str]) -> Floats32:
    mean: Floats32 = _unit(text_encoder.embed(list(aliases)).mean(axis=0, keepdims=True))[0]
    return mean


def _unit(vectors: Floats32) -> Floats32:
    scaled: Floats32 = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled
