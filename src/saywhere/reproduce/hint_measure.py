"""What a tuned UpDn knows, and what it relies on: accuracy, agreement with people, faithfulness, what removal costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from saywhere.core.types import Floats
from saywhere.explain import deletion, gradient_importance, insertion, occlusion, rank_agreement, top_box_iou
from saywhere.explain.faithfulness import Agreement
from saywhere.explain.occlusion import without_top
from saywhere.explain.scores import AnswerScore, UpDnWordScore
from saywhere.models.region_features import RegionFeatures
from saywhere.models.search import GenerationConfig
from saywhere.models.updown import (
    QuestionBatch,
    UpDnCaptioner,
    UpDnVqa,
    answer_accuracy,
    caption,
    collate_captions,
    collate_questions,
)
from saywhere.models.updown.prepared import CaptionItems, QuestionItems
from saywhere.models.updown.task import measure_answers, measure_captions
from saywhere.reproduce import hint_rows as rows

Measured = dict[str, float]
_AT_ONCE = 100
MATTERS = 0.5
"""A region matters to people from this importance on: they look more inside than outside."""
_CURVE_STEPS = 8


def accuracies(model: UpDnVqa, splits: dict[str, QuestionItems]) -> Measured:
    """Accuracy in percent on each split: "changed all", "changed yes/no" …"""
    found: Measured = {}
    for name, items in splits.items():
        for measure, value in measure_answers(model, items).items():
            kind = measure.removeprefix("accuracy").removeprefix("_") or "all"
            if measure.startswith("accuracy"):
                found[f"{name} {kind}"] = 100 * value
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
        score = AnswerScore(model, batch.questions, batch.targets, batch.boxes, batch.pointed)
        found = _agreement(score, batch.regions, batch.present, batch.importance, batch.boxes)
        found |= _removal(model, batch, generator)
        if first < faithful:
            asked = (batch.questions, batch.boxes, batch.pointed)
            given = AnswerScore.of_best(model, batch.regions, batch.present, *asked)
            found |= _faithfulness(given, batch.regions, batch.present)
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
        parts.append(found)
    return {"loss per word": measure_captions(model, items), **_means(parts)}


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
        said |= {name: one.text for name, one in zip(some, texts, strict=True)}
    return said


def _agreement(
    score: AnswerScore | UpDnWordScore, features: Tensor, present: Tensor, human: Tensor, boxes: Tensor
) -> dict[str, Floats]:
    """For each item: rank correlation with people, and IoU of the two top regions, of gradients and of attention."""
    alpha = gradient_importance(score, features, present, chunk=_AT_ONCE)
    with torch.no_grad():
        looked = score.attention(features, present, torch.arange(len(features)))
    people, here = human.numpy(), present.numpy()
    found: dict[str, Floats] = {}
    for values, ranked, top in (
        (alpha, rows.RANKED, rows.TOP),
        (looked, rows.RANKED_ATTENTION, rows.TOP_ATTENTION),
    ):
        found[ranked.name] = rank_agreement(values.numpy(), people, here).each
        found[top.name] = np.array(list(_top_ious(values, human, boxes, present)))
    return found


def _top_ious(values: Tensor, human: Tensor, boxes: Tensor, present: Tensor) -> Iterator[float]:
    for value, person, box, here in zip(values, human, boxes, present, strict=True):
        yield top_box_iou(value[here].numpy(), person[here].numpy(), box[here].numpy())


def _faithfulness(score: AnswerScore | UpDnWordScore, features: Tensor, present: Tensor) -> dict[str, Floats]:
    alpha = gradient_importance(score, features, present, chunk=_AT_ONCE)
    with torch.no_grad():
        looked = score.attention(features, present, torch.arange(len(features)))
    falls, here = occlusion(score, features, present).numpy(), present.numpy()
    curves = {
        rows.DELETION: deletion(score, features, present, alpha, steps=_CURVE_STEPS),
        rows.INSERTION: insertion(score, features, present, alpha, steps=_CURVE_STEPS),
    }
    # Logits of different models are on different scales: an item's curves are measured in their own range.
    scores = torch.cat([curve.scores for curve in curves.values()], dim=1)
    low, high = scores.amin(dim=1), scores.amax(dim=1)
    areas = {measure.name: ((curve.area - low) / (high - low)).double().numpy() for measure, curve in curves.items()}
    return {
        rows.TRUE_GRADIENTS.name: rank_agreement(alpha.numpy(), falls, here).each,
        rows.TRUE_ATTENTION.name: rank_agreement(looked.numpy(), falls, here).each,
        **areas,
    }


def _removal(model: UpDnVqa, batch: QuestionBatch, generator: torch.Generator) -> dict[str, Floats]:
    """For each item: how far accuracy falls, in points, when regions that matter to people, or as many others, go."""
    matter = (batch.importance > MATTERS) & batch.present
    counts = matter.sum(dim=1)
    drawn = torch.rand(batch.present.shape, generator=generator)
    human = batch.importance.masked_fill(~batch.present, 0.0)
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
        rows.DROP.name: 100 * (whole - hinted).numpy(),
        rows.DROP_RANDOM.name: 100 * (whole - random).numpy(),
    }


def _means(parts: list[dict[str, Floats]]) -> Measured:
    """Over all items for which a measure is defined."""
    names = dict.fromkeys(name for part in parts for name in part)
    found = {name: np.concatenate([part[name] for part in parts if name in part]) for name in names}
    # Where a measure is defined for no item, neither is its mean.
    return {name: Agreement(each).mean for name, each in found.items()}
