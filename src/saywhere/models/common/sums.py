"""Measures that add up: the sums of parts are those of the whole, whoever measured which part."""

from __future__ import annotations

from collections.abc import Mapping


class Sums(dict[str, tuple[float, float]]):
    """For each measure, which is a mean, what was summed and over how many things.

    >>> sums = Sums()
    >>> sums.add("loss", 6.0, 2)
    >>> sums.merge({"loss": (1.0, 1), "accuracy": (1.0, 2)})
    >>> sums.means()
    {'loss': 2.3333333333333335, 'accuracy': 0.5}
    """

    def add(self, name: str, total: float, count: float) -> None:
        """Add a sum over `count` things to what there is."""
        before, counted = self.get(name, (0.0, 0.0))
        self[name] = (before + total, counted + count)

    def merge(self, others: Mapping[str, tuple[float, float]]) -> None:
        """Add all sums of another part."""
        for name, (total, count) in others.items():
            self.add(name, total, count)

    def means(self) -> dict[str, float]:
        """The measures; one that was measured on nothing is left out."""
        return {name: total / count for name, (total, count) in self.items() if count}
