"""Every caption measure that can be had here, for all rows of an experiment."""

from __future__ import annotations

from saywhere.core import MissingDependency
from saywhere.metrics import caption_scores, meteor, scene_graph_f
from saywhere.metrics.captions import MeteorTool
from saywhere.reproduce.tables import MeasureColumn

COLUMNS = tuple(MeasureColumn(name) for name in ("BLEU-1", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr", "scene-graph F"))


class CaptionMetrics:
    """Scores captions against references; METEOR's Java program is started once for all.

    missing: for people, why a measure could not be had.
    """

    def __init__(self, references: dict[str, list[str]]) -> None:
        self._references = references
        self._meteor: MeteorTool | None = None
        self._metrics = ["bleu", "rouge_l", "cider"]
        self.missing: list[str] = []

    def __enter__(self) -> CaptionMetrics:
        try:
            scene_graph_f({"": "a cup"}, {"": ["a cup"]})
            self._metrics.append("scene_graph_f")
        except MissingDependency as error:
            self.missing.append(f"Not measured: {error}")
        try:
            self._meteor = MeteorTool()
        except MissingDependency as error:
            self.missing.append(f"Not measured: {error}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._meteor is not None:
            self._meteor.close()

    def scores(self, captions: dict[str, str]) -> dict[str, float]:
        """Measure → value over all captions."""
        scores = dict(caption_scores(captions, self._references, self._metrics)["corpus"])
        if self._meteor is not None:
            scores |= meteor(captions, self._references, tool=self._meteor)["corpus"]
        return scores
