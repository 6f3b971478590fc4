"""`saywhere score referring` and `saywhere score regions`: where expressions are, and what regions are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saywhere.cli.console import counted
from saywhere.cli.data import format_of, read_good
from saywhere.cli.score import Output, Predicted, json_object, report_scores
from saywhere.core.errors import InvalidFile

if TYPE_CHECKING:
    from saywhere.core.types import Bools
    from saywhere.formats.referring_results import ReferringResult

Split = Annotated[str, typer.Option(help="Score this split alone, such as val or testA.")]


@dataclass(frozen=True, slots=True)
class _TrueExpression:
    """box_xyxy: fractions of the photo. mask: made when it is asked for; None if the file has none."""

    id: str
    split: str
    box_xyxy: tuple[float, float, float, float]
    mask: Callable[[], Bools] | None = None


def referring(
    predicted: Annotated[
        Path, typer.Argument(help="Results: {expression_id, box_xyxy, mask} a line; see docs/data.md.")
    ],
    truth: Annotated[
        Path, typer.Argument(help="RefCOCO's refs as JSON, with --instances; or expressions with boxes as TSV.")
    ],
    instances: Annotated[
        Path | None, typer.Option(help="COCO instances: the objects of RefCOCO's refs, with their masks.")
    ] = None,
    split: Split = "",
    threshold: Annotated[float, typer.Option(min=0.01, max=1, help="IoU from which a place counts as found.")] = 0.5,
    output: Output = None,
) -> None:
    """Share of expressions found (P@0.5), mean IoU of boxes, cIoU and gIoU of masks, in all and by split.

    Every expression of the truth must have a line; one without a box or a mask counts as not found. Masks are scored if
    the truth has them and any line does, at the resolution of the truth.
    """
    from saywhere.metrics import ReferringScores

    results: dict[str, ReferringResult] = {}
    for one in read_good(predicted, "referring-results"):
        if results.setdefault(str(one.expression_id), one) is not one:
            raise InvalidFile(predicted, f"has two lines for the expression {one.expression_id}")
    truths = [one for one in _expressions(truth, instances) if not split or one.split == split]
    if not truths:
        raise InvalidFile(truth, f"has no expression{f' of the split {split!r}' if split else ''}")
    if missing := [one.id for one in truths if one.id not in results]:
        raise InvalidFile(predicted, f"lacks {len(missing):,} of {len(truths):,} expressions, such as {missing[0]}")
    scores: dict[str, ReferringScores] = defaultdict(lambda: ReferringScores(threshold))
    per_item: dict[str, dict[str, float]] = {}
    boxes, masks = (any(getattr(one, name) for one in results.values()) for name in ("box_xyxy", "mask"))
    if not boxes and not masks:
        raise InvalidFile(predicted, "has neither boxes nor masks")
    for true in counted(truths, "scoring", len(truths)):
        for metric in (scores[""], scores[true.split]):
            per_item[true.id] = _scored(metric, true, results[true.id], boxes, masks)
    summary = dict(scores.pop("").compute())
    if len(scores) > 1:
        for name, metric in sorted(scores.items()):
            summary |= {f"{name}: {what}": value for what, value in metric.compute().items()}
    inputs = [predicted, truth, *([instances] if instances else [])]
    report_scores(summary, output, inputs, per_item=per_item)


def regions(
    predicted: Predicted,
    truth: Annotated[Path, typer.Argument(help="RefCOCOg's refs as JSON, or Visual Genome's region descriptions.")],
    split: Split = "",
    metrics: Annotated[
        str, typer.Option(help="Metrics, separated by commas: bleu, rouge-l, cider, meteor, spice, scene-graph-f.")
    ] = "meteor,cider",
    output: Output = None,
) -> None:
    """METEOR and CIDEr of captions of regions.

    Predictions are a JSON object: id of a ref (ref_id) or of a region (region_id) → caption. All that people said of
    one ref are its references.
    """
    from saywhere.metrics import caption_scores

    said = json_object(predicted, str)
    references = dict(_region_texts(truth, split))
    if not references:
        raise InvalidFile(truth, f"has no region{f' of the split {split!r}' if split else ''}")
    if missing := [key for key in references if key not in said]:
        raise InvalidFile(predicted, f"lacks {len(missing):,} of {len(references):,} regions, such as {missing[0]}")
    names = tuple(name.strip().replace("-", "_") for name in metrics.split(",") if name.strip())
    scores = caption_scores({key: said[key] for key in references}, references, names)
    summary = {"regions": len(references), **scores["corpus"]}
    report_scores(summary, output, [predicted, truth], per_item=scores["per_item"])


def _scored(metric: Any, true: _TrueExpression, found: ReferringResult, boxes: bool, masks: bool) -> dict[str, float]:
    """The IoUs of one expression, counted."""
    ious: dict[str, float] = {}
    if boxes:
        ious["IoU"] = metric.add_box(found.box_xyxy, true.box_xyxy)
    if masks and true.mask is not None:
        import numpy as np

        from saywhere.formats.coco_instances import resampled

        target = true.mask()
        guess = np.zeros_like(target) if found.mask is None else resampled(found.mask.mask(), *target.shape)
        ious["mask IoU"] = metric.add_mask(guess, target)
    return ious


def _expressions(path: Path, instances: Path | None) -> Iterator[_TrueExpression]:
    from saywhere.formats import refcoco
    from saywhere.formats.record import InvalidRecord

    kind = format_of(path, None).name
    if kind == "referring-lines":
        for line in read_good(path, kind):
            yield _TrueExpression(str(line.line), line.split, line.box_xyxy)
        return
    if kind != "refcoco":
        raise InvalidFile(path, "holds no referring expressions", "give RefCOCO's refs as JSON, or a TSV")
    if instances is None:
        raise InvalidFile(path, "names its objects by number alone", "give the file of their boxes with --instances")
    for ref in refcoco.read(path, instances):
        if isinstance(ref, InvalidRecord) or ref.instance is None:
            raise InvalidFile(path, f"a ref cannot be read: {ref}")
        mask = ref.instance.mask if ref.instance.segmentation is not None else None
        for one in ref.expressions:
            yield _TrueExpression(str(one.sentence_id), ref.split, ref.instance.box_xyxy, mask)


def _region_texts(path: Path, split: str) -> Iterator[tuple[str, list[str]]]:
    kind = format_of(path, None)
    if kind.name not in ("refcoco", "visual-genome") or (split and kind.name == "visual-genome"):
        reason = "has no splits" if kind.name == "visual-genome" else f"holds {kind.holds}, no texts of regions"
        raise InvalidFile(path, reason)
    for one in read_good(path, kind.name):
        if kind.name == "visual-genome":
            yield str(one.region_id), [one.phrase]
        elif not split or one.split == split:
            yield str(one.reference_id), [expression.text for expression in one.expressions]
