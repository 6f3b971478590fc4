"""`saywhere score referring` and `saywhere score regions`: where expressions are, and what regions are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saywhere.cli.console import counted, out, plain_table
from saywhere.cli.data import format_of, read_good
from saywhere.cli.expressions import ExpressionsFile, Instances, Split, read_expressions
from saywhere.cli.score import Output, Predicted, json_object, report_scores
from saywhere.core.errors import InvalidFile

if TYPE_CHECKING:
    from saywhere.build.finding import SaidExpression
    from saywhere.core.types import Bools, Floats
    from saywhere.formats.referring_results import ReferringResult

_PerItem = dict[str, dict[str, float]]


def referring(
    predicted: Annotated[
        Path, typer.Argument(help="Results, as `saywhere find` writes them: {expression_id, box_xyxy, mask} a line.")
    ],
    truth: ExpressionsFile,
    against: Annotated[
        list[Path] | None, typer.Option(help="Results of somebody else, to compare with. Can be repeated.")
    ] = None,
    instances: Instances = None,
    split: Split = "",
    threshold: Annotated[float, typer.Option(min=0.01, max=1, help="IoU from which a place counts as found.")] = 0.5,
    partial: Annotated[bool, typer.Option("--partial", help="Score those expressions alone that have a line.")] = False,
    output: Output = None,
) -> None:
    """Shares of expressions found (P@0.5) and pointed at, mean IoU of boxes, cIoU and gIoU of masks; also by split.

    Every expression of the truth must have a line, but for --partial; one without a box or a mask counts as not found.
    Masks are scored if the truth has them and any line does, at the resolution of the truth. With --against, shares of
    all with their 95 % intervals, and those of the differences to the first, drawn over photos.
    """
    import numpy as np

    results, truths = _results(predicted), read_expressions(truth, instances, split)
    if partial:
        truths = [one for one in truths if one.id in results]
    summary, per_item = _scores(results, truths, predicted, threshold)
    inputs = [predicted, *(against or ()), *([] if truth.is_dir() else [truth]), *([instances] if instances else [])]
    report_scores(summary, output, inputs, per_item=per_item)
    if laid := [one for one in truths if "box on mask IoU" in per_item[one.id]]:
        above = [per_item[one.id]["mask IoU"] - per_item[one.id]["box on mask IoU"] for one in laid]
        told = _interval(100 * np.array(above), [one.photo for one in laid])
        out.print(f"IoU of masks, above that of the boxes themselves, in points: {told}", markup=False)
    if against:
        others = {path: _scores(_results(path), truths, path, threshold)[1] for path in against}
        _compare({predicted: per_item, **others}, truths, threshold)


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


def _results(path: Path) -> dict[str, ReferringResult]:
    results: dict[str, ReferringResult] = {}
    for one in read_good(path, "referring-results"):
        if results.setdefault(str(one.expression_id), one) is not one:
            raise InvalidFile(path, f"has two lines for the expression {one.expression_id}")
    return results


def _scores(
    results: dict[str, ReferringResult], truths: Sequence[SaidExpression], path: Path, threshold: float
) -> tuple[dict[str, float], _PerItem]:
    """The scores of all expressions, and of each."""
    from saywhere.metrics import ReferringScores

    missing = [one.id for one in truths if one.id not in results]
    if missing or not truths:
        which = f", such as {missing[0]}" if missing else ""
        raise InvalidFile(path, f"lacks {len(missing):,} of {len(truths):,} expressions{which}")
    scores: dict[str, ReferringScores] = defaultdict(lambda: ReferringScores(threshold))
    per_item: _PerItem = {}
    boxes, masks = (any(getattr(one, name) for one in results.values()) for name in ("box_xyxy", "mask"))
    if not boxes and not masks:
        raise InvalidFile(path, "has neither boxes nor masks")
    for true in counted(truths, "scoring", len(truths)):
        for metric in (scores[""], scores[true.split]):
            per_item[true.id] = _scored(metric, true, results[true.id], boxes, masks)
    summary = dict(scores.pop("").compute())
    if laid := [one["box on mask IoU"] for one in per_item.values() if "box on mask IoU" in one]:
        summary["gIoU of the boxes themselves"] = sum(laid) / len(laid)
    if len(scores) > 1:
        for name, metric in sorted(scores.items()):
            summary |= {f"{name}: {what}": value for what, value in metric.compute().items()}
    return summary, per_item


def _compare(found: Mapping[Path, _PerItem], truths: Sequence[SaidExpression], threshold: float) -> None:
    """Tables of shares with their intervals, and of how much larger those of the first are."""
    import numpy as np

    photos = [one.photo for one in truths]
    for name, measure, least in ((f"P@{threshold:g}", "IoU", threshold), ("pointing", "pointing", 1.0)):
        reached = {
            path: np.array([100.0 * (items[one.id].get(measure, 0.0) >= least) for one in truths])
            for path, items in found.items()
        }
        first, *_ = reached.values()
        table = plain_table()
        table.add_row(f"{name}, %", "with its interval", "the first is above it by")
        for path, values in reached.items():
            table.add_row(
                path.stem, _interval(values, photos), "" if values is first else _interval(first - values, photos)
            )
        out.print(table)


def _interval(values: Floats, photos: Sequence[str]) -> str:
    """The mean of some values with its 95 % interval over photos."""
    import numpy as np

    from saywhere.reproduce.claims import photo_means

    means = photo_means(values, photos)
    if means is None:
        return f"{values.mean():.1f}"
    low, high = np.percentile(means, (2.5, 97.5))
    return f"{values.mean():.1f} ({low:.1f} … {high:.1f})"


def _scored(metric: Any, true: SaidExpression, found: ReferringResult, boxes: bool, masks: bool) -> dict[str, float]:
    """The IoUs of one expression, counted, and whether it was pointed at."""
    ious: dict[str, float] = {}
    if boxes:
        from saywhere.metrics import points_into

        ious["IoU"] = metric.add_box(found.box_xyxy, true.box_xyxy)
        ious["pointing"] = float(found.box_xyxy is not None and points_into(found.box_xyxy, true.box_xyxy))
    if masks and true.mask is not None:
        import numpy as np

        from saywhere.formats.coco_instances import resampled
        from saywhere.metrics import mask_iou

        target = true.mask()
        guess = np.zeros_like(target) if found.mask is None else resampled(found.mask.mask(), *target.shape)
        ious["mask IoU"] = metric.add_mask(guess, target)
        if boxes:
            ious["box on mask IoU"] = mask_iou(_filled(found.box_xyxy, target.shape), target)
    return ious


def _filled(box_xyxy: tuple[float, float, float, float] | None, shape: tuple[int, int]) -> Bools:
    """The pixels of a box, as if it were the mask."""
    import numpy as np

    inside = np.zeros(shape, dtype=np.bool_)
    if box_xyxy is not None:
        rows, cols = shape
        left, top, right, bottom = np.clip(box_xyxy, 0, 1)
        inside[round(top * rows) : round(bottom * rows), round(left * cols) : round(right * cols)] = True
    return inside


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
