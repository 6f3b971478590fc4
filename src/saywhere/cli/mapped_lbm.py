"""LBM of many pairs wherever an engine works: in this process, in several, on a cluster, with the same distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.core.types import Floats, Progress
from saywhere.engine import Engine, Options, results_of
from saywhere.metrics import lbm_many

_SHARD = 256
PairShard = tuple[int, tuple[tuple[Floats, Floats], ...]]
"""The place of the first pair among all, and the pairs."""


@dataclass(frozen=True)
class LbmOfPairs:
    """A stage: the distance of each of some pairs."""

    k: int
    protocol: str

    def setup(self) -> None:
        """Nothing to get ready."""

    def __call__(self, shard: PairShard, /) -> Floats:
        return lbm_many([a for a, _ in shard[1]], [b for _, b in shard[1]], self.k, self.protocol)


def lbm_mapped(
    pairs: Sequence[tuple[Floats, Floats]], k: int, protocol: str, engine: Engine, progress: Progress | None = None
) -> Floats:
    """The LBM distance of each pair of boxes, as `lbm_many` gives it.

    >>> from saywhere.engine import OneProcess
    >>> box = np.array([(0.0, 0.0, 0.5, 1.0)])
    >>> lbm_mapped([(box, box)], 0, "paper", OneProcess()).tolist()
    [0.0]
    """
    shards: list[PairShard] = [(at, tuple(pairs[at : at + _SHARD])) for at in range(0, len(pairs), _SHARD)]
    options = Options(name=lambda shard: str(shard[0]), progress=progress, doing="comparing traces")
    parts = list(results_of(engine.map(LbmOfPairs(k, protocol), shards, options)))
    return np.concatenate(parts) if parts else np.empty(0)
