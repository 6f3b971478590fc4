"""What a tuned UpDn knows, and what it relies on: accuracy, agreement with people, faithfulness, what removal costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saywhere.core.types import Floats
from saywhere.explain import (
    deletion,
    gradient_importance,
    gradient_times_input,
    insertion,
    occlusion,
    rank_agreement,
    top_box_iou,
)
from saywhere.explain.faithfulness import RankAgreement
from saywhere.explain.occlusion import without_top
from saywhere.explain.scores import CorrectAnswerScore, UpDnWordScore
from saywhere.learn import load_run
from saywhere.metrics import caption_scores, vqa_accuracy
from saywhere.models.region_features import RegionFeatures
from saywhere.models.search import GenerationConfig
from saywhere.models.updown import (
    Captions,
    QuestionBatch,
    Questions,
    UpDnCaptioner,
    UpDnVqa,
    answer_accuracy,
    caption,
    collate_captions,
    collate_questions,
)
from saywhere.models.updown.prepared import CaptionItems, QuestionItems
from saywhere.models.updown.task import answer_sums, as_captioner, as_vqa, caption_sums
from saywhere.reproduce.hint_data import CHANGED_TYPES, POPE
from saywhere.reproduce.tables import MeasureColumn

Measured = dict[str, float]
_AT_ONCE = 100
MATTERS = 0.5
"""A region matters to people from this importance on: it and what is asked about are mostly the same."""
_CURVE_STEPS = 8

ANSWER_TYPES = ("yes/no", "number", "other")
ACCURACY = tuple(
    MeasureColumn(f"{split} {kind}", digits=1)
    for split in ("changed", "same", "train")
    for kind in ("all", *ANSWER_TYPES)
)
PRIMARY = MeasureColumn("changed primary", digits=1)
"""Accuracy where priors change, over the question types whose priors do."""
RANKED = MeasureColumn("ρ gradients, people")
RANKED_INPUT = MeasureColumn("ρ gradient × input, people")
BY_OCCLUSION = MeasureColumn("ρ occlusion, people")
RANKED_ATTENTION = MeasureColumn("ρ attention, people")
TOP = MeasureColumn("IoU top region")
TOP_ATTENTION = MeasureColumn("IoU top, attention")
TRUE_GRADIENTS = MeasureColumn("ρ gradients, occlusion")
TRUE_INPUT = MeasureColumn("ρ gradient × input, occlusion")
TRUE_ATTENTION = MeasureColumn("ρ attention, occlusion")
DELETION = MeasureColumn("deletion area, gradients", lower_is_better=True)
INSERTION = MeasureColumn("insertion area, gradients")
DROP = MeasureColumn("drop without hinted", digits=1)
DROP_RANDOM = MeasureColumn("drop without random", digits=1)
GROUNDING = (
    *(BY_OCCLUSION, RANKED, RANKED_INPUT, RANKED_ATTENTION, TOP, TOP_ATTENTION),
    *(TRUE_GRADIENTS, TRUE_INPUT, TRUE_ATTENTION, DELETION, INSERTION, DROP, DROP_RANDOM),
)
CAPTION_MEASURES = (
    *(MeasureColumn("CIDEr"), MeasureColumn("BLEU-4"), MeasureColumn("loss per word", lower_is_better=True)),
    *(BY_OCCLUSION, RANKED, RANKED_INPUT, RANKED_ATTENTION, TOP, TRUE_GRADIENTS, TRUE_INPUT, TRUE_ATTENTION),
)


def answer_measures(folder: Path, data: Path, trained: int, explained: int, faithful: int, seed: int) -> Measured:
    """Of a run in `folder`, on the questions in `data`. trained: training questions to measure accuracy on."""
    model, questions = as_vqa(load_run(folder, "best").model).eval(), Questions(data)
    changed = questions.split("changed")
    splits = {"changed": changed, "same": questions.split("same"), "train": questions.split("train", trained)}
    if POPE in questions.splits:
        splits[POPE] = questions.split(POPE)
    found = accuracies(model, splits) | primary_accuracy(model, questions, changed)
    return found | grounding(model, with_attention(changed, explained), faithful, seed)


def caption_measures(folder: Path, data: Path, beams: int, explained: int, faithful: int) -> Measured:
    """Of a run in `folder`, on the captions in `data`."""
    model, test = as_captioner(load_run(folder, "best").model).eval(), Captions(data).split("test")
    references: dict[str, list[str]] = {}
    for i in range(len(test)):
        one = test.caption(i)
        references.setdefault(one.image, []).append(one.text)
    said = caption_scores(written(model, test, beams), references, ["bleu", "cider"])["corpus"]
    return {**said, **captioning(model, test, explained, faithful)}


def accuracies(model: UpDnVqa, splits: dict[str, QuestionItems]) -> Measured:
    """Accuracy in percent on each split: "changed all", "changed yes/no" …"""
    found: Measured = {}
    for name, items in splits.items():
        for measure, value in answer_sums(model, items).means().items():
            kind = measure.removeprefix("accuracy").removeprefix("_") or "all"
            if measure.startswith("accuracy"):
                found[f"{name} {kind}"] = 100 * value
    return found


def changed_types(questions: Questions) -> set[str]:
    """Question types whose answers are distributed otherwise in the test of changed priors than in training."""
    return set(questions.about[CHANGED_TYPES])


def primary_accuracy(model: UpDnVqa, questions: Questions, items: QuestionItems) -> Measured:
    """In percent, over the questions of the types whose priors change."""
    kinds = changed_types(questions)
    some = QuestionItems(questions, [i for i in items.indices if questions.question(i).question_type in kinds])
    return {PRIMARY.name: 100 * answer_sums(model, some).means()["accuracy"]} if len(some) else {}


def blind_measures(questions: Questions) -> Measured:
    """Accuracy of a table that gives each question's text its commonest answer in training, else its type's."""
    train = questions.split("train")
    by_text: dict[str, Counter[str]] = {}
    by_type: dict[str, Counter[str]] = {}
    for one in (train.question(i) for i in range(len(train))):
        by_text.setdefault(one.text.lower(), Counter()).update(one.answers)
        by_type.setdefault(one.question_type, Counter()).update(one.answers)
    everything: Counter[str] = sum(by_type.values(), Counter())
    kinds = changed_types(questions)
    found: Measured = {}
    for name in ("changed", "same", "train"):
        right: dict[str, list[float]] = {}
        items = questions.split(name)
        for one in (items.question(i) for i in range(len(items))):
            table = by_text.get(one.text.lower()) or by_type.get(one.question_type) or everything
            accuracy = vqa_accuracy([max(sorted(table), key=table.__getitem__)], [one.answers]).overall
            primary = [PRIMARY.name] if name == "changed" and one.question_type in kinds else []
            for measure in (f"{name} all", f"{name} {one.answer_type}", *primary):
                right.setdefault(measure, []).append(100 * accuracy)
        found |= {measure: float(np.mean(values)) for measure, values in right.items()}
    return found


def with_attention(items: QuestionItems, most: int) -> QuestionItems:
    """The first questions that have human attention."""
    folder = items.folder
    hinted = [index for index in items.indices if folder.question(index).importance is not None]
    return QuestionItems(folder, hinted[:most])


def grounding(model: UpDnVqa, items: QuestionItems, faithful: int, seed: int = 0) -> Measured:
    """How far gradients and attention agree with people and with occlusion, and what removal costs.

    items: with human attention. faithful: on so many of them occlusion and curves are measured, which are slow. Human
    agreement explains the correct answers' score, as HINT trains it; faithfulness the answer that the model gives.
    """
    generator = torch.Generator().manual_seed(seed)
    parts: list[dict[str, Floats]] = []
    for first in range(0, len(items), _AT_ONCE):
        batch = collate_questions(list(items[first : first + _AT_ONCE]))
        score = CorrectAnswerScore(model, batch.questions, batch.targets, batch.boxes, batch.pointed)
        found = _agreement(score, batch.regions, batch.present, batch.importance, batch.boxes)
        found |= _removal(model, batch, generator)
        if first < faithful:
            asked = (batch.questions, batch.boxes, batch.pointed)
            given = CorrectAnswerScore.of_best(model, batch.regions, batch.present, *asked)
            found |= _faithfulness(given, batch.regions, batch.present)
            found |= _rests_on(score, batch.regions, batch.present, batch.importance)
        parts.append(found)
    return _means(parts)


def captioning(model: UpDnCaptioner, items: CaptionItems, most: int, faithful: int) -> Measured:
    """Loss, and for visual words the same agreements as for answers. most: captions to explain words of."""
    parts: list[dict[str, Floats]] = []
    for first in range(0, min(most, len(items)), _AT_ONCE):
        batch = collate_captions(list(items[first : min(most, first + _AT_ONCE)]))
        captions, places = batch.hinted.nonzero(as_tuple=True)
        if not len(captions):
            continue
        # A visual word is said at one place and read at the next.
        score = UpDnWordScore(model, batch.words[captions], places + 1, batch.boxes[captions])
        seen, here = batch.regions[captions], batch.present[captions]
        found = _agreement(score, seen, here, batch.importance[captions, places], batch.boxes[captions])
        if first < faithful:
            found |= _faithfulness(score, seen, here)
            found |= _rests_on(score, seen, here, batch.importance[captions, places])
        parts.append(found)
    return {"loss per word": caption_sums(model, items).means()["loss"], **_means(parts)}


def written(model: UpDnCaptioner, items: CaptionItems, beams: int) -> dict[str, str]:
    """A caption of each image that the items are about, by the image's name."""
    first: dict[str, int] = {}
    for i in range(len(items)):
        first.setdefault(items.caption(i).image, i)
    said: dict[str, str] = {}
    names = list(first)
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        seen = [items[first[name]] for name in some]
        texts = caption(
            model, [RegionFeatures(one.regions, one.boxes) for one in seen], GenerationConfig("beam", beams=beams)
        )
        said |= {name: text.text for name, (text, _) in zip(some, texts, strict=True)}
    return said


def _agreement(
    score: CorrectAnswerScore | UpDnWordScore, features: Tensor, present: Tensor, human: Tensor, boxes: Tensor
) -> dict[str, Floats]:
    """For each item: rank correlation with people, and IoU of the two top regions, of gradients and of attention."""
    alpha = gradient_importance(score, features, present, chunk=_AT_ONCE)
    with torch.no_grad():
        looked = score.attention(features, present, torch.arange(len(features)))
    people, here = human.numpy(), present.numpy()
    found: dict[str, Floats] = {}
    for values, ranked, top in (
        (alpha, RANKED, TOP),
        (looked, RANKED_ATTENTION, TOP_ATTENTION),
    ):
        found[ranked.name] = rank_agreement(values.numpy(), people, here).each
        found[top.name] = np.array(list(_top_ious(values, human, boxes, present)))
    by_input = gradient_times_input(score, features, present, chunk=_AT_ONCE).detach()
    found[RANKED_INPUT.name] = rank_agreement(by_input.numpy(), people, here).each
    return found


def _rests_on(
    score: CorrectAnswerScore | UpDnWordScore, features: Tensor, present: Tensor, human: Tensor
) -> dict[str, Floats]:
    """For each item: how far what the score loses without each region is in the order of people's."""
    falls = occlusion(score, features, present).numpy()
    return {BY_OCCLUSION.name: rank_agreement(falls, human.numpy(), present.numpy()).each}


def _top_ious(values: Tensor, human: Tensor, boxes: Tensor, present: Tensor) -> Iterator[float]:
    for value, person, box, here in zip(values, human, boxes, present, strict=True):
        yield top_box_iou(value[here].numpy(), person[here].numpy(), box[here].numpy())


def _faithfulness(score: CorrectAnswerScore | UpDnWordScore, features: Tensor, present: Tensor) -> dict[str, Floats]:
    alpha = gradient_importance(score, features, present, chunk=_AT_ONCE)
    with torch.no_grad():
        looked = score.attention(features, present, torch.arange(len(features)))
    by_input = gradient_times_input(score, features, present, chunk=_AT_ONCE).detach()
    falls, here = occlusion(score, features, present).numpy(), present.numpy()
    curves = {
        DELETION: deletion(score, features, present, alpha, steps=_CURVE_STEPS),
        INSERTION: insertion(score, features, present, alpha, steps=_CURVE_STEPS),
    }
    # Logits of different models are on different scales: an item's curves are measured in their own range.
    scores = torch.cat([curve.scores for curve in curves.values()], dim=1)
    low, high = scores.amin(dim=1), scores.amax(dim=1)
    areas = {measure.name: ((curve.area - low) / (high - low)).double().numpy() for measure, curve in curves.items()}
    return {
        TRUE_GRADIENTS.name: rank_agreement(alpha.numpy(), falls, here).each,
        TRUE_INPUT.name: rank_agreement(by_input.numpy(), falls, here).each,
        TRUE_ATTENTION.name: rank_agreement(looked.numpy(), falls, here).each,
        **areas,
    }


def _removal(model: UpDnVqa, batch: QuestionBatch, generator: torch.Generator) -> dict[str, Floats]:
    """For each item: how far accuracy falls, in points, when regions that matter to people, or as many others, go."""
    matter = (batch.importance > MATTERS) & batch.present
    counts = matter.sum(dim=1)
    drawn = torch.rand(batch.present.shape, generator=generator)
    human = batch.importance.masked_fill(~batch.present | batch.importance.isnan(), 0.0)
    versions = [
        batch.regions,
        without_top(batch.regions, human, batch.present, counts),
        without_top(batch.regions, drawn, batch.present, counts),
    ]
    with torch.no_grad():
        whole, hinted, random = (
            answer_accuracy(
                model(seen, batch.present, batch.questions, boxes=batch.boxes, pointed=batch.pointed).logits,
                batch.targets,
            ).double()
            for seen in versions
        )
    return {
        DROP.name: 100 * (whole - hinted).numpy(),
        DROP_RANDOM.name: 100 * (whole - random).numpy(),
    }


def _means(parts: list[dict[str, Floats]]) -> Measured:
    """Over all items for which a measure is defined."""
    names = dict.fromkeys(name for part in parts for name in part)
    found = {name: np.concatenate([part[name] for part in parts if name in part]) for name in names}
    # Where a measure is defined for no item, neither is its mean.
    return {name: RankAgreement(each).mean for name, each in found.items()}
