"""What a tuned UpDn knows, and what it relies on: accuracy, agreement with people, faithfulness, what removal costs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saywhere.core import AttentionMap
from saywhere.core.types import Floats
from saywhere.explain import (
    deletion,
    gradient_importance,
    insertion,
    occlusion,
    rank_agreement,
    region_heat,
    top_box_iou,
)
from saywhere.explain.faithfulness import RankAgreement
from saywhere.explain.occlusion import without_top
from saywhere.explain.scores import CorrectAnswerScore, UpDnWordScore
from saywhere.learn import load_run
from saywhere.metrics import caption_scores
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
from saywhere.plots.heats import HeatPanel
from saywhere.reproduce.hint_data import POPE
from saywhere.reproduce.results import HeatExample
from saywhere.reproduce.tables import MeasureColumn

Measured = dict[str, float]
Models = Sequence[tuple[str, Path]]
"""Title of a panel and the folder of its run."""

_AT_ONCE = 100
MATTERS = 0.5
"""A region matters to people from this importance on: they look more inside than outside."""
_CURVE_STEPS = 8
_MOST_PLACES = 0.75
"""Examples where people look at more of the image than this show nothing."""

ANSWER_TYPES = ("yes/no", "number", "other")
ACCURACY = tuple(
    MeasureColumn(f"{split} {kind}", digits=1)
    for split in ("changed", "same", "train")
    for kind in ("all", *ANSWER_TYPES)
)
RANKED = MeasureColumn("ρ gradients, people")
RANKED_ATTENTION = MeasureColumn("ρ attention, people")
TOP = MeasureColumn("IoU top region")
TOP_ATTENTION = MeasureColumn("IoU top, attention")
TRUE_GRADIENTS = MeasureColumn("ρ gradients, occlusion")
TRUE_ATTENTION = MeasureColumn("ρ attention, occlusion")
DELETION = MeasureColumn("deletion area, gradients", lower_is_better=True)
INSERTION = MeasureColumn("insertion area, gradients")
DROP = MeasureColumn("drop without hinted", digits=1)
DROP_RANDOM = MeasureColumn("drop without random", digits=1)
GROUNDING = (
    *(RANKED, RANKED_ATTENTION, TOP, TOP_ATTENTION, TRUE_GRADIENTS, TRUE_ATTENTION),
    *(DELETION, INSERTION, DROP, DROP_RANDOM),
)
CAPTION_MEASURES = (
    *(MeasureColumn("CIDEr"), MeasureColumn("BLEU-4"), MeasureColumn("loss per word", lower_is_better=True)),
    *(RANKED, RANKED_ATTENTION, TOP, TRUE_GRADIENTS, TRUE_ATTENTION),
)


def answer_measures(folder: Path, data: Path, trained: int, explained: int, faithful: int, seed: int) -> Measured:
    """Of a run in `folder`, on the questions in `data`. trained: training questions to measure accuracy on."""
    model, questions = as_vqa(load_run(folder, "best").model).eval(), Questions(data)
    changed = questions.split("changed")
    splits = {"changed": changed, "same": questions.split("same"), "train": questions.split("train", trained)}
    if POPE in questions.splits:
        splits[POPE] = questions.split(POPE)
    found = accuracies(model, splits)
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
    return found


def _top_ious(values: Tensor, human: Tensor, boxes: Tensor, present: Tensor) -> Iterator[float]:
    for value, person, box, here in zip(values, human, boxes, present, strict=True):
        yield top_box_iou(value[here].numpy(), person[here].numpy(), box[here].numpy())


def _faithfulness(score: CorrectAnswerScore | UpDnWordScore, features: Tensor, present: Tensor) -> dict[str, Floats]:
    alpha = gradient_importance(score, features, present, chunk=_AT_ONCE)
    with torch.no_grad():
        looked = score.attention(features, present, torch.arange(len(features)))
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
        TRUE_ATTENTION.name: rank_agreement(looked.numpy(), falls, here).each,
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
        DROP.name: 100 * (whole - hinted).numpy(),
        DROP_RANDOM.name: 100 * (whole - random).numpy(),
    }


def _means(parts: list[dict[str, Floats]]) -> Measured:
    """Over all items for which a measure is defined."""
    names = dict.fromkeys(name for part in parts for name in part)
    found = {name: np.concatenate([part[name] for part in parts if name in part]) for name in names}
    # Where a measure is defined for no item, neither is its mean.
    return {name: RankAgreement(each).mean for name, each in found.items()}


def question_examples(
    out: Path, data: Path, photos: Path, models: Models, most: int, section: str
) -> list[HeatExample]:
    """Questions with changed priors, the first of each type in turn."""
    questions = Questions(data)
    items = _of_each_type(questions.split("changed"), most)
    batch = collate_questions(list(items))
    panels: list[list[HeatPanel]] = [[] for _ in range(len(items))]
    for title, run in models:
        model = as_vqa(load_run(run, "best").model).eval()
        score = CorrectAnswerScore(model, batch.questions, batch.targets, batch.boxes, batch.pointed)
        alpha = gradient_importance(score, batch.regions, batch.present)
        with torch.no_grad():
            given = model(
                batch.regions, batch.present, batch.questions, boxes=batch.boxes, pointed=batch.pointed
            ).logits.argmax(dim=1)
        for i, answer in enumerate(given.tolist()):
            said, true = questions.answers.text(answer), items.question(i).answers
            right = "✓" if said == max(set(true), key=true.count) else "✗"
            rank = _rank(alpha[i], batch.importance[i], batch.present[i])
            panels[i].append(_panel(title, alpha[i], batch.boxes[i], batch.present[i], f"{said} {right}, {rank}"))
    examples = []
    for i, made in enumerate(panels):
        one = items.question(i)
        made.append(_people(batch.importance[i], batch.boxes[i], batch.present[i]))
        truth = max(set(one.answers), key=one.answers.count)
        photo = _photo(out, photos, one.image, section)
        examples.append(HeatExample(photo, f"{one.text} {truth}", tuple(made), len(one.text.split()), section))
    return examples


def caption_examples(out: Path, data: Path, photos: Path, models: Models, most: int, section: str) -> list[HeatExample]:
    """Captions of the test, each with its first visual word that is about a part of the image."""
    items = _with_small(Captions(data).split("test"), most)
    batch = collate_captions(list(items))
    places = batch.hinted.float().argmax(dim=1)
    human = batch.importance[torch.arange(len(items)), places]
    panels: list[list[HeatPanel]] = [[] for _ in range(len(items))]
    for title, run in models:
        model = as_captioner(load_run(run, "best").model).eval()
        alpha = gradient_importance(
            UpDnWordScore(model, batch.words, places + 1, batch.boxes), batch.regions, batch.present
        )
        for i, made in enumerate(panels):
            rank = _rank(alpha[i], human[i], batch.present[i])
            made.append(_panel(title, alpha[i], batch.boxes[i], batch.present[i], rank))
    examples = []
    for i, made in enumerate(panels):
        one = items.caption(i)
        made.append(_people(human[i], batch.boxes[i], batch.present[i]))
        marked = min(word for word, _ in one.visual)
        examples.append(HeatExample(_photo(out, photos, one.image, section), one.text, tuple(made), marked, section))
    return examples


def _of_each_type(items: QuestionItems, most: int) -> QuestionItems:
    """The first questions that people look at a part of the image for; types take turns, and no image comes twice."""
    by_type: dict[str, list[int]] = {}
    for i, index in enumerate(items.indices):
        one = items.question(i)
        if one.importance is not None and one.importance.max() > MATTERS and _is_partial(one.importance):
            by_type.setdefault(one.question_type, []).append(index)
    chosen: list[int] = []
    images: set[str] = set()
    while len(chosen) < most and any(by_type.values()):
        for waiting in by_type.values():
            while waiting:
                index = waiting.pop(0)
                image = items.folder.question(index).image
                if image not in images:
                    images.add(image)
                    chosen.append(index)
                    break
    return QuestionItems(items.folder, chosen[:most])


def _with_small(items: CaptionItems, most: int) -> CaptionItems:
    chosen: list[int] = []
    images: set[str] = set()
    for i, index in enumerate(items.indices):
        one = items.caption(i)
        if one.visual and one.image not in images and _is_partial(min(one.visual)[1]):
            images.add(one.image)
            chosen.append(index)
    return CaptionItems(items.folder, chosen[:most])


def _is_partial(importance: Floats) -> bool:
    return float((importance > MATTERS).mean()) < _MOST_PLACES


def _panel(title: str, alpha: Tensor, boxes: Tensor, present: Tensor, note: str) -> HeatPanel:
    # HINT puts regions in an order; whether they speak for or against the answer it leaves open. So does the picture.
    above = alpha[present] - alpha[present].min()
    heat = region_heat(above.numpy(), boxes[present].numpy())
    return HeatPanel(title, AttentionMap(heat) if heat.any() else None, _top(alpha, boxes, present), note)


def _people(human: Tensor, boxes: Tensor, present: Tensor) -> HeatPanel:
    # Every region that holds all of what people look at has importance 1: the sky around a clock as well as the clock.
    # The smallest of them is what is meant.
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    matters = (human - MATTERS).clamp_min(0) / area.sqrt().clamp_min(1e-3)
    heat = region_heat(matters[present].numpy(), boxes[present].numpy())
    return HeatPanel("people", AttentionMap(heat) if heat.any() else None, None, "what the question is about")


def _top(alpha: Tensor, boxes: Tensor, present: Tensor) -> Floats:
    """(1, 4) the most important region."""
    best = int(alpha.masked_fill(~present, -torch.inf).argmax())
    return boxes[best : best + 1].double().numpy()


def _rank(alpha: Tensor, human: Tensor, present: Tensor) -> str:
    return f"ρ {rank_agreement(alpha[None].numpy(), human[None].numpy(), present[None].numpy()).mean:+.2f}"


def _photo(out: Path, photos: Path, image: str, section: str) -> str:
    """The photo copied beside the report; its place there."""
    [source] = sorted(path for path in photos.iterdir() if path.stem == image)[:1]
    place = Path("photos") / section.replace(" ", "-") / source.name
    (out / place).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, out / place)
    return str(place)
