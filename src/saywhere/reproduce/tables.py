"""Rows that were measured with several seeds, and the tables made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class MeasureColumn:
    """One measure of a table. name: as in the heading. lower_is_better: for distances. digits: decimals to show."""

    name: str
    lower_is_better: bool = False
    digits: int = 3


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model of a table: what the paper reports for it (empty where it does not), and what each seed gave here.

    scores: one dict of measure → value for each seed, in the order of `Results.seeds`.
    """

    name: str
    scores: tuple[dict[str, float], ...] = ()
    paper: dict[str, float] = field(default_factory=dict)

    def mean(self, measure: str) -> float:
        return float(np.mean([score[measure] for score in self.scores]))


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the paper's form. number: the paper's; 0 if the paper has none like it.

    title: what is compared, on which data, here. section: tables of one section stand together under its name.
    rows_are: what stands over the names of rows. compete: whether the best row of a column is worth pointing out; not
    if rows are scenes, for instance.
    """

    number: int
    title: str
    columns: tuple[MeasureColumn, ...]
    rows: tuple[ModelRow, ...]
    section: str = ""
    rows_are: str = "Model"
    compete: bool = True


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """What every row scored with every seed; tables and claims are made of it.

    titles: key of a row → its name in tables. scores: key and seed → measure → value. section: as of tables.
    """

    titles: Mapping[str, str]
    seeds: Sequence[int]
    scores: Mapping[tuple[str, int], Mapping[str, float]]
    section: str = ""

    def values(self, key: str, measure: str) -> list[float]:
        """One for each seed."""
        return [self.scores[key, seed][measure] for seed in self.seeds]

    def mean(self, key: str, measure: str) -> float:
        return float(np.mean(self.values(key, measure)))

    def row(self, key: str) -> ModelRow:
        return ModelRow(self.titles[key], tuple(dict(self.scores[key, seed]) for seed in self.seeds))

    def table(
        self,
        number: int,
        title: str,
        columns: Sequence[MeasureColumn],
        keys: Iterable[str],
        paper: Mapping[str, Mapping[str, float]] | None = None,
        **shape: Any,
    ) -> Table:
        """The rows `keys` with what these columns show of them. paper: row → measure → value. shape: as of `Table`."""
        names = [column.name for column in columns]
        rows = []
        for key in keys:
            scores = (self.scores[key, seed] for seed in self.seeds)
            printed = (paper or {}).get(key, {})
            shown, beside = (
                tuple({name: one[name] for name in names if name in one} for one in some)
                for some in (scores, [printed])
            )
            rows.append(ModelRow(self.titles[key], shown, beside[0]))
        return Table(number, title, tuple(columns), tuple(rows), self.section, **shape)
