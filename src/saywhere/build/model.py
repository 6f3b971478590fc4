"""From a COCO store to a model that sees with an eye of its own, in one go.

1. features   every photo through the frozen trunk, once (`eye_features`)
2. eye        the eye, and a writer that attends to it, side by side; the writer begins as one that learnt from texts
3. around     both go on, now also with what lies around things, which the eye has words for by then
4. pixels     if asked for, both go on from the photos themselves, and the trunk learns, too; then every photo is looked
              at again with what the trunk has become
5. reward     if asked for, the writer is tuned by CIDEr less what it costs to name things that are not there
6. model      both put into a copy of a model that has a memory, names of kinds and a writer of texts (`with_eye`)
7. text       if asked for, a writer that learns from text alone, for this eye (`text_writer`)
8. matching   if asked for, the part that tells photos apart (`matching`)
9. answers    if asked for, the part that answers questions (`answers`)
10. referring if asked for, the part that finds what expressions mean (`referring_part`)
11. naming    if asked for, the part that says which kind a box shows (`naming`)
Each stage leaves its files in the work folder and is not done again. One may begin with an eye and a writer that learnt
elsewhere, in place of stages 1 to 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saywhere.build.answers import PART, AnswerInputs, AnswerScale, build_answers, install_answers
from saywhere.build.eye_auxiliary import Looker, look_again
from saywhere.build.eye_features import build_eye_features
from saywhere.build.eye_things import Finder, find_things
from saywhere.build.matching import MatchingScale, build_matching, install_matching
from saywhere.build.naming import NamingScale, build_naming, install_naming
from saywhere.build.referring_part import build_referring, install_referring
from saywhere.build.referring_training import TrainingConfig
from saywhere.build.text_writer import TextWriterScale, build_text_writer, install_text_writer
from saywhere.build.with_eye import build_with_eye
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Progress
from saywhere.language.embed import TextEncoder
from saywhere.learn import train_to_end
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.patchioner.photo_writing import EYE_FOLDER, PhotoWriter
from saywhere.models.patchioner.seer import open_eyes, open_seer
from saywhere.models.patchioner.seer_config import read_config
from saywhere.store import Store
from saywhere.vision.eye import EyeConfig, EyeNet
from saywhere.vision.runtime import Runtime

WRITER = "looking"
_FEATURES = "features"
_TEXT_WRITER = "decoder"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """start: a folder with a writer and, in its eye/, its eye, as `saywhere export` leaves it, to begin with.
    steps, around_steps, pixel_steps, reward_steps: of the four trainings; 0 for none, with a start the first two are
    not made. tuned: of the trunk's blocks and rank, see `EyeSection`.
    text_steps, matching_steps, answer_steps, referring_epochs: of the writer that learns from text alone, and of the
    parts that tell photos apart, answer and find; 0 for none. naming: whether there is one that names boxes.
    batch, reward_batch: photos a step. precision: "fp32", or "bf16" where the processor has it. photos: at most, those
    with most labels first. eye: how the eye learns, see `EyeSection`."""

    start: Path | None = None
    steps: int = 4000
    around_steps: int = 1800
    pixel_steps: int = 0
    tuned: tuple[int, int] = (6, 16)
    reward_steps: int = 0
    text_steps: int = 0
    matching_steps: int = 0
    answer_steps: int = 0
    referring_epochs: int = 0
    naming: bool = False
    batch: int = 32
    reward_batch: int = 16
    rate: float = 4e-4
    reward_rate: float = 4e-5
    precision: str = "fp32"
    photos: int | None = None
    eye: tuple[tuple[str, Any], ...] = (("layers", 4), ("kept_share", 0.4))
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FrozenParts:
    """What a model is built on and does not learn. trunk: of the eye, from pixels to hidden states and colours;
    trunk_about: what these depend on. detector: what finds the things that answers and matching read. auxiliary: what
    looks a second time, for matching; None for a matching without it. open_tuned: gives the same of an eye that learnt
    something of its trunk."""

    trunk: Runtime
    trunk_about: dict[str, Any]
    text_encoder: TextEncoder
    detector: Finder
    config: EyeConfig
    auxiliary: Looker | None = None
    open_tuned: Callable[[EyeNet], tuple[Runtime, dict[str, Any]]] | None = None


def build_model(
    store: Store,
    base: Path,
    out: Path,
    work: Path,
    frozen: FrozenParts,
    settings: ModelSettings,
    progress: Progress,
) -> tuple[str, ...]:
    """Make the folder `out`; the photos that could not be read. base: the folder of the model that is copied."""
    _check_labels(store, settings)
    learnt = settings.start or _learn_to_see(store, base, work, frozen, settings, progress)
    if settings.pixel_steps:
        labels = work / _FEATURES
        if settings.start is not None:
            labels = work / "labels"
            _features(store, labels, (None, {}), frozen, settings, progress)
        both = train_to_end(pixel_recipe(labels, store.folder, learnt, settings), work / "pixels", PhotoWriter)
        learnt = work / "learnt-pixels"
        both.save_pretrained(learnt)
    seeing = EyeLearner.from_pretrained(learnt / EYE_FOLDER).eye
    features = work / _FEATURES
    if seeing.config.tuned_rank:
        if frozen.open_tuned is None:
            raise InvalidValue("the eye", "learnt something of its trunk, which cannot be opened here")
        features = work / "features-tuned"
        unreadable = _features(store, features, frozen.open_tuned(seeing), frozen, settings, progress)
    else:
        unreadable = _features(store, features, (frozen.trunk, frozen.trunk_about), frozen, settings, progress)
    find_things(store, features, frozen.detector, progress)
    if frozen.auxiliary is not None and settings.matching_steps:
        look_again(store, features, frozen.auxiliary, progress)
    if settings.reward_steps:
        writer = train_to_end(reward_recipe(features, learnt, settings), work / "reward", PhotoWriter, "last")
        learnt = work / "rewarded"
        writer.save_pretrained(learnt)
    build_with_eye(base, learnt / EYE_FOLDER, {WRITER: learnt}, out)
    if settings.text_steps:
        steps = settings.text_steps, max(1, settings.text_steps // 2)
        likely = TextWriterScale(*steps, bf16=settings.precision == "bf16", seed=settings.seed)
        install_text_writer(build_text_writer(features, out, work / "text", likely, progress), out)
    if settings.matching_steps:
        scale = MatchingScale(settings.matching_steps, bf16=settings.precision == "bf16", seed=settings.seed)
        install_matching(build_matching(features, learnt / EYE_FOLDER, work / "matching", scale, progress), out)
    if settings.answer_steps:
        inputs = AnswerInputs(store.folder, features, learnt / EYE_FOLDER)
        asking = AnswerScale(steps=settings.answer_steps, bf16=settings.precision == "bf16", seed=settings.seed)
        build_answers(inputs, work / "answers", asking, progress)
        install_answers(work / "answers" / PART, out)
    if settings.referring_epochs:
        training = TrainingConfig(epochs=settings.referring_epochs, seed=settings.seed)
        finding = build_referring(store, open_seer(out), out, work / "referring", training, progress)
        install_referring(finding.part, out)
    if settings.naming:
        eyes = open_eyes(out, read_config(out), detector=frozen.detector)
        names = NamingScale(photos=settings.photos, seed=settings.seed)
        install_naming(build_naming(store, eyes, out, work / "naming", names, progress).part, out)
    return unreadable


def _learn_to_see(
    store: Store, base: Path, work: Path, frozen: FrozenParts, settings: ModelSettings, progress: Progress
) -> Path:
    """The folder of a writer and its eye that learnt from what the frozen trunk gives."""
    features = work / _FEATURES
    _features(store, features, (frozen.trunk, frozen.trunk_about), frozen, settings, progress)
    both = train_to_end(eye_recipe(features, base / _TEXT_WRITER, settings), work / "eye", PhotoWriter)
    learnt = work / "learnt"
    both.save_pretrained(learnt)
    if settings.around_steps:
        both = train_to_end(around_recipe(features, learnt, settings), work / "around", PhotoWriter)
        learnt = work / "learnt-around"
        both.save_pretrained(learnt)
    return learnt


def _features(
    store: Store,
    out: Path,
    trunk: tuple[Runtime | None, dict[str, Any]],
    frozen: FrozenParts,
    settings: ModelSettings,
    progress: Progress,
) -> tuple[str, ...]:
    made = build_eye_features(store, out, *trunk, frozen.text_encoder, frozen.config, progress, settings.photos)
    return made.unreadable


def _check_labels(store: Store, settings: ModelSettings) -> None:
    """What is missing for the last parts is said before the first one takes hours."""
    wanted: list[tuple[tuple[str, ...], str, str]] = []
    if settings.answer_steps:
        wanted.append((("questions", "cocoqa"), "questions", "answer_steps"))
    if settings.referring_epochs:
        wanted.append((("referring",), "referring expressions", "referring_epochs"))
    for fields, what, setting in wanted:
        if not any(row[field] for field in fields for row in store.having(field)):
            raise InvalidFile(store.folder, f"has no {what}", f"see docs/data.md, or leave that part out: {setting} 0")


def eye_recipe(features: Path, decoder: Path, settings: ModelSettings) -> Recipe:
    """recipes/eye-and-writer.toml for these folders."""
    model = {"captions": 4, "boxes": 5, "named": 0.25, "smoothing": 0.0, "eye": dict(settings.eye)}
    data = {"folder": str(features), "decoder": str(decoder)}
    return _side_by_side("the eye and its writer", model, data, settings.steps, settings)


def around_recipe(features: Path, learnt: Path, settings: ModelSettings) -> Recipe:
    """recipes/surroundings.toml for these folders. learnt: a writer, with its eye."""
    eye = dict(settings.eye) | {"surroundings": 0.4}
    model = {"captions": 4, "boxes": 5, "named": 0.25, "smoothing": 0.0, "surroundings": True, "eye": eye}
    data = {"folder": str(features), "eye": str(learnt / EYE_FOLDER), "decoder": str(learnt)}
    return _side_by_side("the eye, its writer and surroundings", model, data, settings.around_steps, settings)


def pixel_recipe(labels: Path, photos: Path, learnt: Path, settings: ModelSettings) -> Recipe:
    """recipes/eye-from-pixels.toml for these folders. learnt: a writer, with its eye."""
    blocks, rank = settings.tuned
    eye = dict(settings.eye) | {"surroundings": 0.4, "tuned_blocks": blocks, "tuned_rank": rank}
    model = {"captions": 4, "boxes": 5, "named": 0.25, "smoothing": 0.0, "surroundings": True, "eye": eye}
    data = {"folder": str(labels), "photos": str(photos), "eye": str(learnt / EYE_FOLDER), "decoder": str(learnt)}
    return _side_by_side("the eye from pixels, its trunk too", model, data, settings.pixel_steps, settings)


def _side_by_side(
    name: str, model: dict[str, Any], data: dict[str, Any], steps: int, settings: ModelSettings
) -> Recipe:
    table = {
        "name": name,
        "task": "patchioner-photo-writer",
        "seed": settings.seed,
        "model": model,
        "data": data,
        "train": {
            **_pace(steps, settings.batch, settings.rate, settings),
            "weight_decay": 0.03,
            "clip_norm": 2.0,
            "ema_decay": 0.995,
            "groups": [{"modules": ["eye.eye.blocks"], "lr": settings.rate / 2}],
        },
        "schedule": {"kind": "cosine", "warmup_steps": max(1, steps // 28), "floor": 0.02},
        "validate": {"metric": "loss", "every_steps": max(1, steps // 6)},
        "checkpoint": {"every_steps": max(1, steps // 15)},
    }
    return parse_recipe(table, name)


def reward_recipe(features: Path, learnt: Path, settings: ModelSettings) -> Recipe:
    """recipes/photo-reward.toml for these folders. learnt: a writer, with its eye."""
    table = {
        "name": "the writer, rewarded",
        "task": "patchioner-photo-reward",
        "seed": settings.seed,
        "model": {
            "boxes": 3,
            "named": 0.25,
            "samples": 6,
            "sample_temperature": 0.5,
            "invented": 0.3,
            "smoothing": 0.0,
            "dropout": 0.0,
            "surroundings": True,
        },
        "data": {"folder": str(features), "eye": str(learnt / EYE_FOLDER), "decoder": str(learnt)},
        "train": {
            **_pace(settings.reward_steps, settings.reward_batch, settings.reward_rate, settings),
            "clip_norm": 1.0,
            "ema_decay": 0.99,
        },
        "schedule": {"kind": "cosine", "warmup_steps": max(1, settings.reward_steps // 30), "floor": 0.05},
        "validate": {"metric": "loss", "every_steps": max(1, settings.reward_steps // 3)},
        "checkpoint": {"every_steps": max(1, settings.reward_steps // 6)},
    }
    return parse_recipe(table, "the writer, rewarded")


def _pace(steps: int, batch: int, rate: float, settings: ModelSettings) -> dict[str, Any]:
    return {"steps": steps, "batch_size": batch, "lr": rate, "precision": settings.precision}
