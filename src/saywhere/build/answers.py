"""How the part of a model that answers questions is made: from a COCO store, what the eye's trunk gave, and an eye.

    questions → places → texts → a network that answers, and a blind one → judgement → answers/ and a report

Every step goes on where it stopped.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from saywhere.build.answer_places import see_places
from saywhere.build.answer_questions import QuestionScale, write_questions, write_texts
from saywhere.build.answer_report import AnswerReport, report_of
from saywhere.build.parts import install_part
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Progress
from saywhere.language.embed import open_token_encoder
from saywhere.learn import train_to_end
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.models.answerer.answering import TokenEncoder
from saywhere.models.answerer.data import TRAIN, TUNE, AnswerData
from saywhere.models.answerer.judgement import Judgement, fit_judgement
from saywhere.models.answerer.kinds import question_kind
from saywhere.models.answerer.network import AnswerNet
from saywhere.models.answerer.task import answered, human
from saywhere.store import Store

DATA, RUN, BLIND, PART, REPORT = "data", "run", "run-blind", "answers", "report.md"
"""What a build's folder holds: `PART` is for the model, the rest may be thrown away."""
_EXAMPLES = (
    "Is there a dog?",
    "How many people are there?",
    "What color is the bus?",
    "What is the man doing?",
    "Which is larger, the dog or the chair?",
    "What is to the left of the dog?",
    "What is this? (pointing at it)",
    "Is this a cup? (pointing at it)",
)
"""Of kinds of questions that are learnt from."""


@dataclass(frozen=True, slots=True)
class AnswerScale:
    """questions: which, see there. steps, batch, lr …: of the training; a step reads `batch` photos with four questions
    each. blind_steps: of the network that sees no photo. least: an answer that is right less often is not given.
    bf16: compute in it, which is three times faster on processors that have it."""

    questions: QuestionScale = field(default_factory=QuestionScale)
    steps: int = 4000
    blind_steps: int = 1500
    batch: int = 48
    lr: float = 6e-4
    width: int = 256
    layers: int = 3
    least: float = 0.25
    threads: int | None = None
    bf16: bool = True
    seed: int = 0


@dataclass(frozen=True, slots=True)
class AnswerInputs:
    """coco: a store of `saywhere build coco`. features: what `saywhere build eye` wrote. eye: a trained one. start: a
    network to begin with, which may know fewer answers and no second look."""

    coco: Path
    features: Path
    eye: Path
    start: Path | None = None


def build_answers(
    inputs: AnswerInputs,
    out: Path,
    scale: AnswerScale,
    progress: Progress,
    encoder: TokenEncoder | None = None,
) -> AnswerReport:
    """Write out/answers, a part of a model, and out/report.md; what it is worth.

    encoder: reads questions; the one that answers will be given with by default.
    """
    data = prepare_answers(inputs, out / DATA, scale, progress, encoder)
    progress("learning without the photo", 0, 1)
    blind = train_to_end(answer_recipe(out / DATA, scale, blind=True), out / BLIND, AnswerNet)
    progress("learning to answer", 0, 1)
    network = train_to_end(answer_recipe(out / DATA, scale, start=inputs.start), out / RUN, AnswerNet)
    judgement = judge(network, blind, data, scale.least, progress)
    network.attach(data.answers, judgement)
    network.save_pretrained(out / PART, int8=True)
    # What is shipped is what is measured: a byte a number.
    report = report_of(AnswerNet.from_pretrained(out / PART), blind, data, progress)
    report.save(out / REPORT)
    return report


def install_answers(part: Path, model: Path) -> None:
    """Put a trained part into a model's folder, in place of one that was there, and name it in seer.json."""
    second = {"auxiliary": True} if AnswerNet.from_pretrained(part).second is not None else {}
    install_part(part, model, answers=part.name, question_kinds=list(_EXAMPLES), **second)


def prepare_answers(
    inputs: AnswerInputs, out: Path, scale: AnswerScale, progress: Progress, encoder: TokenEncoder | None = None
) -> AnswerData:
    """Write what is learnt from, or go on with it."""
    out.mkdir(parents=True, exist_ok=True)
    photos = write_questions(Store(inputs.coco), out, scale.questions, progress)
    see_places(inputs.features, inputs.eye, photos, out, progress, bf16=scale.bf16)
    with torch.autocast("cpu", torch.bfloat16, enabled=scale.bf16):
        write_texts(out, encoder or open_token_encoder(), scale.questions, progress)
    return AnswerData(out)


def judge(network: AnswerNet, blind: AnswerNet, data: AnswerData, least: float, progress: Progress) -> Judgement:
    """How answers are to be taken, from people's questions about photos that nothing was learnt from."""
    asked = human(data.photos(TUNE))
    if not asked:
        raise InvalidFile(data.folder, "has no human question to calibrate with")
    said, right = answered(network, data, asked, progress)
    _, without = answered(blind, data, asked)
    learnt_from = Counter(question_kind(one.text) for _, some in human(data.photos(TRAIN)) for one in some)
    questions = [one.text for _, some in asked for one in some]
    return fit_judgement(questions, said, right, without, learnt_from, data.words, least)


def answer_recipe(data: Path, scale: AnswerScale, *, blind: bool = False, start: Path | None = None) -> Recipe:
    """The recipe that a person could run with `saywhere train` to get the same weights."""
    steps = scale.blind_steps if blind else scale.steps
    often = max(1, steps // 8)
    train: dict[str, Any] = {
        "steps": steps,
        "batch_size": scale.batch,
        "lr": scale.lr,
        "optimizer": "adamw",
        "weight_decay": 0.05,
        "decay_norms_and_biases": False,
        "clip_norm": 2.0,
        "ema_decay": 0.998,
        "precision": "bf16" if scale.bf16 else "fp32",
    }
    table: dict[str, Any] = {
        "name": "answers without the photo" if blind else "answers",
        "task": "answerer",
        "seed": scale.seed,
        "model": {"width": scale.width, "layers": scale.layers, "inner": 2 * scale.width, "blind": blind},
        "data": {"folder": str(data)} | ({} if start is None else {"start": str(start)}),
        "train": train | ({} if scale.threads is None else {"num_threads": scale.threads}),
        "schedule": {"kind": "cosine", "warmup_steps": max(1, steps // 20), "floor": 0.02},
        "validate": {"every_steps": often, "metric": "accuracy", "mode": "max", "at_start": False},
        "checkpoint": {"every_steps": often, "keep": 1},
    }
    return parse_recipe(table, "answers")
