"""What a model's states know: the mean of the last layer's, and a small classifier on it (Sec. 7 and App. D).

    states = pooled_many(model, ids, image_of)                     # (n, d)
    table = probe_table({"before": states, "after": others}, labels)

The probes are scikit-learn's random forest and an MLP of three layers of 16 (L-BFGS, α = 1), on splits of 90/10, 70/30
and 50/50. All states of a table meet the same splits, so that differences are of the states alone. Two baselines:
labels drawn at random as often as they occur, which is the paper's, and always the commonest label, which is harder to
beat.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core.errors import InvalidValue, UnknownName, require
from saywhere.core.types import Floats, Ints, Progress, owned
from saywhere.explain.attention_blocks import parts_of
from saywhere.explain.rounds import ROUND, ImageOf, attend_rounds
from saywhere.models.attended import Attended, Attending, TokenKind

Over = Literal["all", "inputs"]
Probe = Literal["forest", "mlp", "random", "majority"]
Labels = NDArray[np.str_]

PROBES: Final[tuple[Probe, ...]] = get_args(Probe)
BASELINES: Final = ("random", "majority")
TRAIN_SHARES: Final = (0.9, 0.7, 0.5)
_HIDDEN: Final = (16, 16, 16)
_MAX_ITERATIONS: Final = 1000


def pooled(attended: Attended, over: Over | TokenKind = "all") -> Floats:
    """(b, d) the mean of the last layer's states over what is there; NaN for an image where nothing is.

    over: "all" but padding, as the paper has it ("across the inputs"); "inputs", tags and regions without the special
    tokens; or one part.
    """
    parts = parts_of(attended)
    if isinstance(over, TokenKind):
        kept = parts == over
    elif over == "all":
        kept = parts != TokenKind.PAD
    elif over == "inputs":
        kept = (parts == TokenKind.TAG) | (parts == TokenKind.REGION)
    else:
        raise UnknownName("places to take the mean over", str(over), get_args(Over))
    states: Floats = attended.states.detach().double().cpu().numpy()
    counts = kept.sum(axis=1)
    sums = np.where(kept[:, :, None], states, 0.0).sum(axis=1)
    mean: Floats = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], np.nan)
    return mean


def pooled_many(
    model: Attending,
    ids: Sequence[str],
    image_of: ImageOf,
    *,
    over: Over | TokenKind = "all",
    batch: int = ROUND,
    progress: Progress | None = None,
) -> Floats:
    """(n, d) `pooled` of any number of images in their order. After an ablation: `removed(image_of, removals)`."""
    if not ids:
        raise InvalidValue("images to probe", "there is none")
    some = attend_rounds(model, ids, image_of, batch=batch, progress=progress)
    return np.concatenate([pooled(one.attended, over) for one in some])


@dataclass(frozen=True, slots=True)
class ClassScore:
    """F1 of one label, and how many items of the test have it."""

    f1: float
    support: int


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """One split. micro: F1 over all items, here the share that is right. macro: the mean over the labels in the test.

    weighted: the same, weighted by their number. classes: by label, those in the test. converged: False if training
    stopped at its limit.
    """

    seed: int
    train: int
    test: int
    micro: float
    macro: float
    weighted: float
    classes: dict[str, ClassScore]
    converged: bool


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A probe on one kind of states at one split, repeated over seeds.

    states: their name; "" for baselines, which see none. singles: labels with one item, which is trained on and can
    never be tested. left_out: items without a label, or without a state in any of the states compared.
    """

    states: str
    probe: Probe
    train_share: float
    runs: tuple[ProbeRun, ...]
    singles: tuple[str, ...]
    left_out: int

    @property
    def micro(self) -> float:
        """The mean over seeds."""
        return _mean([run.micro for run in self.runs])

    @property
    def macro(self) -> float:
        """The mean over seeds."""
        return _mean([run.macro for run in self.runs])

    @property
    def weighted(self) -> float:
        """The mean over seeds."""
        return _mean([run.weighted for run in self.runs])

    @property
    def converged(self) -> float:
        """The share of runs that did."""
        return _mean([float(run.converged) for run in self.runs])

    @property
    def classes(self) -> dict[str, ClassScore]:
        """By label, the mean F1 over seeds; the support in one test is the same for every seed."""
        names = sorted(self.runs[0].classes)
        return {
            name: ClassScore(_mean([run.classes[name].f1 for run in self.runs]), self.runs[0].classes[name].support)
            for name in names
        }


def split(labels: Labels, train_share: float, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Indices to train on and to test on, rising; every label with two items or more is in both parts.

    Of m items with a label, m · (1 − train_share) go to the test, rounded, at least 1 and at most m − 1. So tests are a
    little larger than told where there are many rare labels.
    """
    if not 0 < train_share < 1:
        raise InvalidValue("share to train on", f"{train_share} is not between 0 and 1")
    test: list[int] = []
    for label in np.unique(labels):
        mine = generator.permutation(np.flatnonzero(labels == label))
        if len(mine) > 1:
            count = min(max(1, round(len(mine) * (1 - train_share))), len(mine) - 1)
            test += mine[:count].tolist()
    tested = np.array(sorted(test), np.int64)
    return np.setdiff1d(np.arange(len(labels)), tested), tested


def probe_table(
    states: Mapping[str, ArrayLike],
    labels: Sequence[str | None],
    *,
    probes: Sequence[Probe] = PROBES,
    train_shares: Sequence[float] = TRAIN_SHARES,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
) -> list[ProbeResult]:
    """Every probe on every kind of states at every split: Tables 4, 6 and 7 and Figs. 9 and 13.

    states: by name ("before", "after", "after, ablated" …), (n, d) each, of the same items in the same order; a row
    with NaN says that there is no state. labels: (n,), None where it is not known. Such items are left out everywhere.
    """
    for probe in probes:
        if probe not in PROBES:
            raise UnknownName("probe", str(probe), PROBES)
    if not states or not seeds:
        raise InvalidValue("probes", "need states and seeds")
    rows = {
        name: owned(values, f"states {name!r}", (len(labels), None), finite=False) for name, values in states.items()
    }
    usable = np.array([label is not None for label in labels], np.bool_)
    for values in rows.values():
        usable &= np.isfinite(values).all(axis=1)
    known = np.array([label for label, use in zip(labels, usable, strict=True) if use], np.str_)
    counts = Counter(known.tolist())
    if sum(count > 1 for count in counts.values()) < 2:
        raise InvalidValue(
            "labels", "fewer than two of them have two items or more", "a probe needs something to tell apart"
        )
    singles = tuple(sorted(name for name, count in counts.items() if count == 1))
    left_out = len(labels) - len(known)
    nothing = {"": np.zeros((len(labels), 0))}
    results = []
    for share, probe in product(train_shares, probes):
        for name, values in (nothing if probe in BASELINES else rows).items():
            runs = tuple(_run(probe, values[usable], known, share, seed) for seed in seeds)
            results.append(ProbeResult(name, probe, share, runs, singles, left_out))
    return results


def _run(probe: Probe, states: Floats, labels: Labels, train_share: float, seed: int) -> ProbeRun:
    # Splits depend on the seed alone, so that every probe and every kind of states meets the same.
    train, test = split(labels, train_share, np.random.default_rng(seed))
    converged = True
    if probe == "random":
        guessed = np.random.default_rng((seed, 1)).choice(labels[train], len(test))
    elif probe == "majority":
        # The first in the alphabet of equals.
        names, counts = np.unique(labels[train], return_counts=True)
        guessed = np.full(len(test), names[counts.argmax()])
    else:
        fitted, converged = _fitted(probe, states[train], labels[train], seed)
        guessed = fitted.predict(states[test])
    return _scored(labels[test], guessed, seed, len(train), converged)


def _fitted(probe: Probe, states: Floats, labels: Labels, seed: int) -> tuple[Any, bool]:
    """A trained classifier, and whether its training converged."""
    if probe == "forest":
        # A forest asks only which of two numbers is larger: it needs no scaling, and cannot fail to converge.
        forest = _sklearn("ensemble").RandomForestClassifier(random_state=seed)
        return forest.fit(states, labels), True
    # L-BFGS and the penalty α see the scale of the states, which differs between models; so all get the same.
    mlp = _sklearn("neural_network").MLPClassifier(
        hidden_layer_sizes=_HIDDEN, solver="lbfgs", alpha=1.0, max_iter=_MAX_ITERATIONS, random_state=seed
    )
    scaled = _sklearn("pipeline").make_pipeline(_sklearn("preprocessing").StandardScaler(), mlp)
    unfinished = _sklearn("exceptions").ConvergenceWarning
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scaled.fit(states, labels)
    for one in caught:
        if not issubclass(one.category, unfinished):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return scaled, not any(issubclass(one.category, unfinished) for one in caught)


def _scored(true: Labels, guessed: Labels, seed: int, train: int, converged: bool) -> ProbeRun:
    classes: dict[str, ClassScore] = {}
    for name in np.unique(true).tolist():
        here, said = true == name, guessed == name
        classes[name] = ClassScore(float(2 * (here & said).sum() / (here.sum() + said.sum())), int(here.sum()))
    return ProbeRun(
        seed,
        train,
        len(true),
        float((true == guessed).mean()),
        _mean([score.f1 for score in classes.values()]),
        sum(score.f1 * score.support for score in classes.values()) / len(true),
        classes,
        converged,
    )


def _sklearn(part: str) -> Any:
    return require(f"sklearn.{part}", needed_for="probing", extra="probes")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
