"""The recipe of `saywhere-base`: from photos with captions to the folder that the package ships.

1. look      every photo once: the mean of its patches, and what the detector found in it
2. align     ridge regression of features and tags onto the mean vector of a photo's captions (`ridge`)
3. gap       out-of-fold vectors of the photos, and the model of how they differ from their captions' (`gap_model`)
4. decoder   learnt from text alone, on vectors moved across that gap; and a second one, tuned by reward on the pairs
             (`learn.reward`)
5. memory    captions for provenance
Each stage leaves its files in the work folder and is not done again.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.core import Frame, InvalidFile, InvalidValue
from saywhere.formats import coco_captions
from saywhere.formats.record import InvalidRecord
from saywhere.language.coco_aliases import coco_aliases
from saywhere.language.embed import TextEncoder
from saywhere.language.vocabulary import Vocabulary
from saywhere.learn import load_run, train
from saywhere.learn.recipe import parse_recipe
from saywhere.models.patchioner.alignment import LinearAlignment
from saywhere.models.patchioner.data import save_texts
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.folder import save_part
from saywhere.models.patchioner.gap_model import GapModel
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.ridge import fit_ridge, out_of_fold
from saywhere.models.patchioner.seer import save_config
from saywhere.models.patchioner.tags import Tags, tag_scores
from saywhere.vision import Encoder
from saywhere.vision.detector import Detector

Progress = Callable[[str, int, int], None]
Floats = NDArray[np.float32]
_WORD = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")
_CAPTIONS = 5
_FLOOR = 1e-2
"""Added to each feature's standard deviation, as a share of that of all: rare features would be blown up otherwise."""


@dataclass(frozen=True, slots=True)
class PhotoSet:
    """Photos with captions. photos: files. captions: by the file's name without its ending; at least five each.

    weight: how much each photo counts for the alignment.
    """

    photos: tuple[Path, ...]
    captions: dict[str, list[str]]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class BaseSettings:
    """penalty: of the ridge. tag_scale: how much cheaper the tags' weights are than the features'.
    steps, reward_steps, batch, reward_batch: of the decoders, by likelihood and by reward; held_out: texts that each is
    validated on; width, layers: their shape. vocabulary: words at most, each seen `min_count` times."""

    penalty: float = 10_000.0
    tag_scale: float = 2.0
    steps: int = 4000
    reward_steps: int = 100
    batch: int = 96
    reward_batch: int = 32
    held_out: int = 500
    width: int = 256
    layers: int = 4
    vocabulary: int = 8000
    min_count: int = 5
    seed: int = 0


def coco_set(photos: Path, captions: Path, left_out: frozenset[str], weight: float) -> tuple[PhotoSet, list[list[str]]]:
    """COCO's photos that are here, and the captions of those that are not, photo by photo.

    left_out: names of photos to never see.
    """
    told: dict[str, list[str]] = {}
    for record in coco_captions.read(captions):
        if isinstance(record, InvalidRecord):
            raise InvalidFile(captions, f"record {record.line}: {record.reason}")
        told.setdefault(f"{int(record.image_id):012d}", []).append(record.caption)
    here = tuple(path for path in sorted(photos.iterdir()) if path.stem in told)
    kept = tuple(path for path in here if path.stem not in left_out)
    names = {path.stem for path in here}
    others = [texts for name, texts in told.items() if name not in names | left_out]
    return PhotoSet(kept, {path.stem: told[path.stem] for path in kept}, weight), others


def flickr_set(photos: Path, tokens: Path, weight: float = 1.0) -> PhotoSet:
    """Flickr8k: lines of "name.jpg#number<tab>caption"."""
    told: dict[str, list[str]] = {}
    for line in tokens.read_text(encoding="utf-8").splitlines():
        name, _, caption = line.partition("\t")
        told.setdefault(name.partition(".")[0], []).append(caption)
    return PhotoSet(tuple(path for path in sorted(photos.iterdir()) if path.stem in told), told, weight)


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
) -> None:
    """Make the folder `out`. more_texts: for the decoder alone. bank_texts: captions of photos that are not here, for
    the memory and, half of the time, for the decoder: the style it shall write in, with those of the first set."""
    features, scores = look_at(sets, work, encoder, detector, progress)
    said = [s.captions[p.stem][:_CAPTIONS] for s in sets for p in s.photos]
    _check_captions(said)
    flat = [text for texts in said for text in texts]
    vectors = _embedded("photo captions", flat, work, text_encoder, progress).reshape(len(said), _CAPTIONS, -1)
    counts = np.concatenate([np.full(len(s.photos), s.weight, dtype=np.float32) for s in sets])
    photo_vectors = align(features, scores, vectors, counts, detector.names, out, text_encoder, settings)
    gap = GapModel.fit(vectors.reshape(len(flat), -1), np.repeat(photo_vectors, _CAPTIONS, axis=0))
    gap.save(work / "gap")
    own = [sets[0].captions[path.stem][:_CAPTIONS] for path in sets[0].photos]
    style = [text for texts in (*own, *bank_texts) for text in texts]
    style_groups = [group for group, texts in enumerate((*own, *bank_texts)) for _ in texts]
    style_vectors = _embedded("sentences of the memory", style, work, text_encoder, progress)
    MemoryBank(style_vectors, style, text_encoder.fingerprint).save(out / "memory.safetensors")
    more_vectors = _embedded("more texts", list(more_texts), work, text_encoder, progress)
    words = Vocabulary.of_words(
        [*map(plain, style)] * 3 + [*map(plain, more_texts)], settings.vocabulary, settings.min_count
    )
    about = {"encoder": dict(text_encoder.fingerprint)}
    # Style and other texts half and half, whatever their numbers: the smaller part comes again and again.
    again = max(1, round(len(more_texts) / max(1, len(style))))
    first_free = len(own) + len(bank_texts)
    save_texts(
        work / "texts",
        [plain(text) for text in (*style * again, *more_texts)],
        np.concatenate([np.tile(style_vectors, (again, 1)), more_vectors]),
        words,
        about,
        groups=[*style_groups * again, *range(first_free, first_free + len(more_texts))],
    )
    pairs = np.repeat(photo_vectors, _CAPTIONS, axis=0)
    groups = np.repeat(np.arange(len(said)), _CAPTIONS)
    save_texts(work / "pairs", [plain(text) for text in flat], pairs, words, about, groups=groups)
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
    build_base([own, flickr], more, others, out, work, encoder, detector, text_encoder, settings, progress)


def held_out(which: str) -> frozenset[str]:
    """Names of the COCO photos that nothing learns from: "test" (500) or "validation" (250)."""
    return frozenset((files("saywhere.build") / f"{which}_photos.txt").read_text(encoding="utf-8").split())


def plain(text: str) -> str:
    """Lower case, words alone: what the decoder learns to say."""
    return " ".join(_WORD.findall(text.lower()))


def look_at(
    sets: Sequence[PhotoSet], work: Path, encoder: Encoder, detector: Detector, progress: Progress
) -> tuple[Floats, Floats]:
    """(n, d) mean features and (n, kinds) tag scores of all photos, kept in work/looked.npz."""
    paths = [path for one in sets for path in one.photos]
    stored = work / "looked.npz"
    if stored.exists():
        with np.load(stored) as arrays:
            if arrays["names"].tolist() == [path.name for path in paths]:
                return arrays["features"], arrays["scores"]
    features = np.empty((len(paths), encoder.size), dtype=np.float32)
    scores = np.empty((len(paths), len(detector.names)), dtype=np.float32)
    for number, path in enumerate(paths):
        view = encoder.look(path)
        features[number] = view.patches.mean(axis=(0, 1))
        scores[number] = whole_scores(detector, path, view.frame)
        progress("looking at photos", number + 1, len(paths))
    work.mkdir(parents=True, exist_ok=True)
    with write_atomic(stored) as file:
        np.savez(file, features=features, scores=scores, names=np.array([path.name for path in paths]))
    return features, scores


def whole_scores(detector: Detector, path: Path, frame: Frame) -> Floats:
    """(kinds,) tag scores of a whole photo."""
    everywhere = np.ones((1, *frame.grid), dtype=np.float32)
    one: Floats = tag_scores(detector.find(path), detector.names, everywhere, frame)[0]
    return one


def align(
    features: Floats,
    scores: Floats,
    vectors: Floats,
    counts: Floats,
    names: Sequence[str],
    out: Path,
    text_encoder: TextEncoder,
    settings: BaseSettings,
) -> Floats:
    """Write alignment/, tags/ and classes/; return the photos' out-of-fold vectors, (n, d) of length 1."""
    mean, scale = _standard(features)
    tag_mean, tag_scale = _standard(scores)
    tag_scale = tag_scale / settings.tag_scale
    inputs = np.concatenate([(features - mean) / scale, (scores - tag_mean) / tag_scale], axis=1)
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
        "encoder": "efficientnet-lite0",
        "input_px": 448,
        "detector": True,
        "class_names": True,
        "gap": "memory",
        "temperature": 0.015,
        "writers": {"zero-shot": "decoder", "paired": "decoder-paired"},
        "blend": {"whole": 0.2, "region": 2.0, "classes": 0.3},
        "least_similarity": 0.55,
        "least_grounding": 0.45,
        "beams": 3,
        "no_repeat": 3,
    }


def _decoders(out: Path, work: Path, settings: BaseSettings) -> None:
    """Learn a decoder from text alone, tune a copy of it by reward on photos' vectors, and put both into `out`."""
    across = {"gap": str(work / "gap"), "gap_strength": [0.6, 1.2], "project_rate": 0.3, "temperature": 0.02}
    model = {**across, "bank": 20_000}
    from_text = _run(
        "decoder", "patchioner-decoder", "texts", (settings.steps, settings.batch, 1e-3), model, work, settings
    )
    from_text.save_pretrained(out / "decoder", half=True)
    reward = (settings.reward_steps, settings.reward_batch, 1e-4)
    model = {"noise": [0.0, 0.0], "project_rate": 0.25, "temperature": 0.02}
    start = {"init_from": str(work / "decoder")}
    tuned = _run("decoder-paired", "patchioner-reward", "pairs", reward, model, work, settings, start)
    tuned.save_pretrained(out / "decoder-paired", half=True)


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
    if train(parse_recipe(table, name), work / name).status == "interrupted":
        raise KeyboardInterrupt
    made = load_run(work / name, "last").model
    if not isinstance(made, PrefixDecoder):
        raise TypeError(f"the run {name} made a {type(made).__name__}")
    return made


def _embedded(
    what: str, texts: list[str], work: Path, text_encoder: TextEncoder, progress: Progress
) -> NDArray[np.float32]:
    """(n, d) vectors, kept in the work folder as float16."""
    stored = work / f"{what.replace(' ', '-')}.npy"
    if stored.exists() and len(kept := np.load(stored)) == len(texts):
        return np.asarray(kept, dtype=np.float32)
    vectors = text_encoder.embed(texts, progress=lambda done, total: progress(f"embedding {what}", done, total))
    work.mkdir(parents=True, exist_ok=True)
    with write_atomic(stored) as file:
        np.save(file, vectors.astype(np.float16))
    return vectors.astype(np.float32)


def _check_captions(said: Sequence[Sequence[str]]) -> None:
    if short := sum(len(texts) < _CAPTIONS for texts in said):
        raise InvalidValue("captions", f"{short} photos have fewer than {_CAPTIONS}")


def _standard(values: Floats) -> tuple[Floats, Floats]:
    return values.mean(axis=0), values.std(axis=0) + _FLOOR * values.std()


def _mean_name(text_encoder: TextEncoder, aliases: Sequence[str]) -> Floats:
    mean: Floats = _unit(text_encoder.embed(list(aliases)).mean(axis=0, keepdims=True))[0]
    return mean


def _unit(vectors: Floats) -> Floats:
    scaled: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled
