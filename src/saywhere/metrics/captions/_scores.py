"""Several caption metrics at once, on captions that are checked and split into words only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.metrics.captions import _bleu, _cider, _meteor, _rouge, _scene_graph, _spice
from saywhere.metrics.captions._cider import DocumentFrequency
from saywhere.metrics.captions._items import Accumulator, CaptionSet, Id, ScoreTable, caption_set

DEFAULT_METRICS = ("bleu", "rouge_l", "cider")

# The two halves of each metric: what is kept of a batch, and the scores of all that was kept.
_Halves = tuple[Callable[[CaptionSet[Any]], Any], Callable[[Sequence[Any]], ScoreTable[Any]]]
METRICS = ("bleu", "rouge_l", "cider", "cider_plain", "meteor", "spice", "scene_graph_f")


def caption_scores(
    candidates: Mapping[Id, str],
    references: Mapping[Id, Sequence[str]],
    metrics: Iterable[str] = DEFAULT_METRICS,
    *,
    tokenized: bool = False,
    df: DocumentFrequency | None = None,
) -> ScoreTable[Id]:
    """Score captions against references: {"corpus": {score: value}, "per_item": {id: {score: value}}}.

    candidates: one caption for each id, an int or str. An empty one is allowed and scores 0.
    references: at least one caption for each of the same ids.
    metrics: any of "bleu" (scores "BLEU-1" … "BLEU-4"), "rouge_l" ("ROUGE-L"), "cider" ("CIDEr", which is CIDEr-D),
        "cider_plain" ("CIDEr (plain)"), "meteor" ("METEOR", needs Java), "spice" ("SPICE", needs Java and CoreNLP) and
        "scene_graph_f" ("scene-graph F", needs spaCy).
    tokenized: the captions are already words joined by spaces.
    df: how rare n-grams are in a bigger set, for CIDEr; else the references tell it.
    """
    chosen = _chosen(metrics, df)
    captions = caption_set(candidates, references, tokenized=tokenized)
    return _finish([_tally(captions, chosen)], chosen)


class CaptionScores(Accumulator[list[Any]]):
    """`caption_scores` over captions that come in batches."""

    def __init__(self, metrics: Iterable[str] = DEFAULT_METRICS, *, df: DocumentFrequency | None = None) -> None:
        chosen = _chosen(metrics, df)
        super().__init__(partial(_tally, chosen=chosen), partial(_finish, chosen=chosen))


def _chosen(metrics: Iterable[str], df: DocumentFrequency | None) -> list[_Halves]:
    if isinstance(metrics, str):
        raise InvalidValue("metrics", f"expected several names, got the text {metrics!r}", "write (name,) for one")
    names = list(dict.fromkeys(metrics))
    if not names:
        raise InvalidValue("metrics", "none were asked for", f"known are {', '.join(METRICS)}")
    for name in names:
        if name not in METRICS:
            raise UnknownName("caption metric", str(name), METRICS)
    halves: dict[str, _Halves] = {
        "bleu": (_bleu._tally, _bleu._finish),
        "rouge_l": (_rouge._tally, _rouge._finish),
        "cider": (_cider._tally, partial(_cider._finish, df=df)),
        "cider_plain": (_cider._tally, partial(_cider._finish, df=df, variant="plain")),
        "meteor": (_meteor._tally, _meteor._finish),
        "spice": (_spice._tally, _spice._finish),
        "scene_graph_f": (_scene_graph._tally, _scene_graph._finish),
    }
    return [halves[name] for name in names]


def _tally(captions: CaptionSet[Id], chosen: list[_Halves]) -> list[Any]:
    return [tally(captions) for tally, _ in chosen]


def _finish(tallies: Sequence[list[Any]], chosen: list[_Halves]) -> ScoreTable[Any]:
    scores: ScoreTable[Any] = {"corpus": {}, "per_item": {}}
    for (_, finish), batches in zip(chosen, zip(*tallies, strict=True), strict=True):
        of_metric = finish(batches)
        scores["corpus"].update(of_metric["corpus"])
        for item, values in of_metric["per_item"].items():
            scores["per_item"].setdefault(item, {}).update(values)
    return scores
