"""How sure the aligner is of words that voices say which it never heard, by cross-validation over voices.

    python -m bench.align_folds EVIDENCE.jsonl [--picture FILE.png] [--write]

EVIDENCE is what `bench.align_listen` heard. For each voice, everything that is learnt (what each listener is late by,
the weights of the confidence, when a text is refused) is learnt from the other voices in all rooms, and measured on
this one; nothing quoted was learnt from what it is measured on. --write keeps what all voices together teach, in
`saywhere/language/trust.json`.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.align_listen import FITTING, WRONG
from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats
from saywhere.language import speech, trust
from saywhere.language.opinion import Opinion
from saywhere.language.trust import Trust

NEAR_S, FAR_S = 0.25, 1.0
# Weight decay of the logistic regression, in examples.
_DECAY = 1.0
# What words of wrong texts count beside those of right ones: few people write another text than they said.
_WRONG_WEIGHT = 0.1
# A wrong text that is taken is so many times as bad as a right one that is refused.
_WRONG_COSTS = 3.0


@dataclass(frozen=True, slots=True)
class Hearing:
    """A line of the evidence. starts_s: none if the text is another's. opinions: none if the recording was refused."""

    room: str
    recording: str
    voice: str
    words: list[str]
    starts_s: Floats
    duration_s: float
    opinions: dict[str, Opinion]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a hearing: how far off each word is and how sure we were; refused ones are infinitely far."""

    hearing: Hearing
    refused: bool
    off_s: Floats
    confidence: Floats


def read(path: Path) -> list[Hearing]:
    found = []
    for line in map(json.loads, path.read_text("utf-8").splitlines()):
        opinions = {} if line["refused"] else {name: _opinion(kept) for name, kept in line["opinions"].items()}
        facts = line["room"], line["recording"], line["voice"], line["words"]
        found.append(Hearing(*facts, np.array(line["starts_s"]), line["duration_s"], opinions))
    return found


def _opinion(kept: dict[str, list[float]]) -> Opinion:
    return Opinion(*(np.array(kept[name], dtype=np.float64) for name in Opinion.__slots__))


def learn(hearings: Sequence[Hearing]) -> Trust:
    """What these recordings teach."""
    right = [one for one in hearings if one.opinions and one.room != WRONG]
    late_s = {name: _late_s(right, name) for name in right[0].opinions}
    rows, near, counts = [], [], []
    for one in (one for one in hearings if one.opinions):
        for name, opinion in one.opinions.items():
            heard = ~np.isnan(opinion.starts_s)
            rows.append(trust.evidence(one.words, one.opinions, late_s, name)[heard])
            true = one.starts_s if len(one.starts_s) else np.full(len(heard), np.inf)
            near.append(np.abs(opinion.starts_s - late_s[name] - true)[heard] <= NEAR_S)
            counts.append(np.full(int(heard.sum()), _WRONG_WEIGHT if one.room == WRONG else 1.0))
    weights = _logistic(np.concatenate(rows), np.concatenate(near), np.concatenate(counts))
    lenient = Trust(late_s, weights, 0.0, 0.0)
    judged = [(one, outcome(one, lenient)) for one in hearings if one.opinions]
    unheard = np.concatenate([o.off_s[o.confidence == 0.0] for one, o in judged if one.room != WRONG])
    by_chance = float((np.sum(np.abs(unheard) <= NEAR_S) + 1) / (len(unheard) + 2))
    return Trust(late_s, weights, _least(judged), by_chance)


def _late_s(hearings: Iterable[Hearing], name: str) -> float:
    return float(np.nanmedian(np.concatenate([one.opinions[name].starts_s - one.starts_s for one in hearings])))


def _logistic(rows: Floats, near: NDArray[np.bool_], counts: Floats) -> Floats:
    from scipy.optimize import minimize

    sign = np.where(near, 1.0, -1.0)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = sign * (rows @ weights)
        slope = -sign * counts / (1 + np.exp(margin.clip(-50, 50)))
        return float(
            counts @ np.logaddexp(0, -margin) + _DECAY * weights @ weights
        ), rows.T @ slope + 2 * _DECAY * weights

    return np.asarray(minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x)


def _least(judged: Sequence[tuple[Hearing, Outcome]]) -> float:
    """The mean confidence that parts right texts from wrong ones best; halfway in the gap where there is one."""
    means = np.array([outcome.confidence.mean() for _, outcome in judged])
    wrong = np.array([one.room == WRONG for one, _ in judged])
    useful = np.array([np.mean(np.abs(outcome.off_s) <= NEAR_S) > 0.5 for _, outcome in judged])
    edges = np.concatenate([[0.0], np.sort(means)])
    middles = (edges[1:] + edges[:-1]) / 2
    cost = [_WRONG_COSTS * np.sum(wrong & (means >= at)) + np.sum(~wrong & useful & (means < at)) for at in middles]
    return float(middles[int(np.argmin(cost))])


def outcome(one: Hearing, learnt: Trust) -> Outcome:
    """What the aligner makes of a hearing."""
    n = len(one.words)
    lost = Outcome(one, True, np.full(n, np.inf), np.zeros(n))
    if not one.opinions:
        return lost
    judged = trust.judge(one.words, one.opinions, learnt)
    try:
        speech.check_fit(judged, learnt)
    except InvalidValue:
        return lost
    words = speech.heard_words(one.words, judged, one.duration_s)
    true = one.starts_s if len(one.starts_s) else np.full(n, np.inf)
    return Outcome(one, False, np.array([w.start_s for w in words]) - true, np.array([w.confidence for w in words]))


def crossed(hearings: Sequence[Hearing]) -> list[Outcome]:
    """Every hearing, judged by what the other voices taught."""
    found = []
    for voice in sorted({one.voice for one in hearings}):
        learnt = learn([one for one in hearings if one.voice != voice])
        found += [outcome(one, learnt) for one in hearings if one.voice == voice]
    return found


def tables(found: Sequence[Outcome]) -> str:
    """Markdown: for each room, and how often words of a confidence are right."""
    lines = ["| room | words | within 0.25 s | refused | words over 1 s off, not marked | voices, worst |"]
    lines.append("|---|---|---|---|---|---|")
    for room in FITTING:
        ours = [one for one in found if one.hearing.room == room]
        if ours:
            lines.append(_row(room, ours))
    wrong = [one for one in found if one.hearing.room == WRONG]
    refused = sum(one.refused for one in wrong)
    unmarked = sum(int(np.sum(one.confidence >= speech.DOUBTFUL)) for one in wrong)
    n_words = sum(len(one.off_s) for one in wrong)
    lines += [
        "",
        f"Texts of another recording: {refused} of {len(wrong)} refused; {unmarked} of their {n_words} words unmarked.",
    ]
    lines += ["", "| confidence | words | right |", "|---|---|---|"]
    off_s, sure = _all_words([one for one in found if one.hearing.room != WRONG])
    for low, high in ((0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 0.95), (0.95, 1.01)):
        these = (low <= sure) & (sure < high)
        if these.any():
            right = np.mean(np.abs(off_s[these]) <= NEAR_S)
            lines.append(
                f"| {low:.2f}–{min(high, 1):.2f} (mean {sure[these].mean():.2f}) | {these.sum()} | {right:.2f} |"
            )
    bins = np.minimum((sure * 10).astype(int), 9)
    gaps = [
        abs(np.mean(np.abs(off_s[bins == b]) <= NEAR_S) - sure[bins == b].mean()) * np.mean(bins == b)
        for b in set(bins)
    ]
    return "\n".join([*lines, "", f"Expected calibration error (ten bins): {sum(gaps):.3f}."])


def _all_words(found: Sequence[Outcome]) -> tuple[Floats, Floats]:
    taken = [one for one in found if not one.refused]
    return np.concatenate([one.off_s for one in taken]), np.concatenate([one.confidence for one in taken])


def _row(room: str, ours: Sequence[Outcome]) -> str:
    off_s = np.concatenate([one.off_s for one in ours])
    silent = sum(
        int(np.sum((np.abs(o.off_s) > FAR_S) & (o.confidence >= speech.DOUBTFUL))) for o in ours if not o.refused
    )
    by_voice: defaultdict[str, list[bool]] = defaultdict(list)
    for one in ours:
        by_voice[one.hearing.voice] += (np.abs(one.off_s) <= NEAR_S).tolist()
    worst = min(float(np.mean(near)) for near in by_voice.values())
    refused = sum(one.refused for one in ours)
    near = np.mean(np.abs(off_s) <= NEAR_S)
    return f"| {room} | {len(off_s)} | {near:.1%} | {refused} of {len(ours)} | {silent} | {worst:.1%} |"


def draw(found: Sequence[Outcome], path: Path) -> None:
    """How far off words are, and how often they are as right as we said."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    errors, reliability = figure.subplots(1, 2)
    for room, colour in (("clear", "#0b6e69"), (None, "#c9622b")):
        ours = [one for one in found if one.hearing.room == room or (room is None and one.hearing.room in FITTING[1:])]
        off_s, _ = _all_words(ours)
        edges = np.linspace(-0.6, 0.6, 61)
        share = np.histogram(off_s.clip(-0.6, 0.6), edges)[0] / sum(len(one.off_s) for one in ours)
        errors.stairs(share, edges, color=colour, label=room or "in rooms", linewidth=1.5)
    for at in (-NEAR_S, NEAR_S):
        errors.axvline(at, color="#888", linewidth=0.8, linestyle=":")
    errors.set(xlabel="seconds after the true start (outermost: farther)", ylabel="share of all words")
    errors.legend(frameon=False)
    off_s, sure = _all_words([one for one in found if one.hearing.room != WRONG])
    bins = np.minimum((sure * 10).astype(int), 9)
    points = [
        (sure[bins == b].mean(), np.mean(np.abs(off_s[bins == b]) <= NEAR_S), np.sum(bins == b))
        for b in sorted(set(bins))
    ]
    said, right, count = np.array(points).T
    reliability.plot([0, 1], [0, 1], color="#888", linewidth=0.8, linestyle=":")
    reliability.scatter(said, right, s=10 + count / 5, color="#0b6e69")
    reliability.set(xlabel="confidence of words", ylabel="share within 0.25 s", xlim=(0, 1), ylim=(0, 1.02))
    figure.savefig(path, dpi=130)


def kept(learnt: Trust) -> dict[str, Any]:
    numbers = {"least": round(learnt.least, 4), "unheard": round(learnt.unheard, 4)}
    late_s = {name: round(value, 4) for name, value in learnt.late_s.items()}
    return {
        "made_by": "python -m bench.align_folds",
        "late_s": late_s,
        "weights": [round(float(one), 4) for one in learnt.weights],
        **numbers,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evidence", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    hearings = read(args.evidence)
    found = crossed(hearings)
    print(tables(found))
    if args.picture:
        draw(found, args.picture)
    if args.write:
        with write_atomic(Path(trust.__file__).with_name("trust.json")) as file:
            file.write((json.dumps(kept(learn(hearings)), indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
