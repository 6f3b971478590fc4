"""Examples of HINT's report: questions and captions with where a network, and people, looked."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saywhere.core import AttentionMap
from saywhere.core.types import Floats
from saywhere.explain import gradient_importance, rank_agreement, region_heat
from saywhere.explain.human import whole_image
from saywhere.explain.scores import CorrectAnswerScore, UpDnWordScore
from saywhere.learn import load_run
from saywhere.models.updown import Captions, Questions, collate_captions, collate_questions
from saywhere.models.updown.prepared import CaptionItems, QuestionItems
from saywhere.models.updown.task import as_captioner, as_vqa
from saywhere.plots.heats import HeatPanel
from saywhere.reproduce._cells import NOTHING
from saywhere.reproduce.hint_measure import MATTERS
from saywhere.reproduce.results import HeatExample
from saywhere.store import Store

Photos = Path | Store
"""A folder of photographs, or a store that `saywhere build coco` wrote."""
Models = Sequence[tuple[str, Path]]
"""Title of a panel and the folder of its run."""

_MOST_PLACES = 0.75
"""Examples where people look at more of the image than this show nothing."""


def question_examples(
    out: Path, data: Path, photos: Photos, models: Models, most: int, section: str
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
        made.append(_people(batch.importance[i], batch.boxes[i], batch.present[i], "what the question is about"))
        truth = max(set(one.answers), key=one.answers.count)
        photo = _photo(out, photos, one.image, section)
        examples.append(HeatExample(photo, one.text, tuple(made), section=section, answer=truth))
    return examples


def caption_examples(
    out: Path, data: Path, photos: Photos, models: Models, most: int, section: str
) -> list[HeatExample]:
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
        made.append(_people(human[i], batch.boxes[i], batch.present[i], "what the word in bold means"))
        word = min(place for place, _ in one.visual)
        examples.append(HeatExample(_photo(out, photos, one.image, section), one.text, tuple(made), word, section))
    return examples


def _of_each_type(items: QuestionItems, most: int) -> QuestionItems:
    """The first questions that people look at a part of the image for; types take turns, and no image comes twice."""
    by_type: dict[str, list[int]] = {}
    for i, index in enumerate(items.indices):
        one = items.question(i)
        if one.importance is not None and np.nanmax(one.importance) > MATTERS and _is_partial(one.importance):
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
    # HINT puts regions in an order; whether they speak for or against the answer it leaves open. So does the picture,
    # which shows parts of the image alone.
    parts = present & ~torch.from_numpy(whole_image(boxes.double().numpy()))
    above = alpha[parts] - alpha[parts].min()
    heat = region_heat(above.numpy(), boxes[parts].numpy())
    return HeatPanel(title, AttentionMap(heat) if heat.any() else None, _top(alpha, boxes, parts), note)


def _people(human: Tensor, boxes: Tensor, present: Tensor, note: str) -> HeatPanel:
    heat = region_heat(human[present].numpy(), boxes[present].numpy())
    return HeatPanel("people", AttentionMap(heat) if heat.any() else None, None, note)


def _top(alpha: Tensor, boxes: Tensor, present: Tensor) -> Floats:
    """(1, 4) the most important region."""
    best = int(alpha.masked_fill(~present, -torch.inf).argmax())
    return boxes[best : best + 1].double().numpy()


def _rank(alpha: Tensor, human: Tensor, present: Tensor) -> str:
    agreement = rank_agreement(alpha[None].numpy(), human[None].numpy(), present[None].numpy()).mean
    return f"ρ {signed(agreement)}"


def signed(value: float) -> str:
    """For people: +0.48, −0.48, 0.00, or a dash where there is none."""
    if math.isnan(value):
        return NOTHING
    rounded = round(value, 2)
    return f"{rounded:+.2f}".replace("-", "−") if rounded else "0.00"


def _photo(out: Path, photos: Photos, image: str, section: str) -> str:
    """The photo copied beside the report; its place there."""
    folder = Path("photos") / section.replace(" ", "-")
    (out / folder).mkdir(parents=True, exist_ok=True)
    if isinstance(photos, Store):
        place = folder / f"{image}.jpg"
        (out / place).write_bytes(photos.by_key(image)["jpeg"])
        return str(place)
    [source] = sorted(path for path in photos.iterdir() if path.stem == image)[:1]
    shutil.copyfile(source, out / folder / source.name)
    return str(folder / source.name)
