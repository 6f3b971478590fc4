"""What the rows of the HINT experiment scored, as tables, sweeps and claims."""

from __future__ import annotations

from collections.abc import Sequence

from saywhere.reproduce import hint_rows as rows
from saywhere.reproduce.hint_rows import BASE, HINT, NONE, ClaimPlan, HintRow
from saywhere.reproduce.paired import mean_interval
from saywhere.reproduce.results import Claim, Column, Row, Sweep, Table, judge

Scores = dict[tuple[str, int], dict[str, float]]
"""Row and seed → measure → value."""

_POPE = Column("pope all", digits=1)
_TRUTH = Column("ρ with occlusion")
_PLOTTED_PERCENT = 12.0


def section_tables(section: str, seeds: Sequence[int], answers: Scores, captions: Scores) -> list[Table]:
    """Accuracy, grounding and, apart, the amount of hints; then captions."""
    accuracy = (*rows.ACCURACY, *([_POPE] if _has(answers, _POPE) else []))
    first = {
        row.key: {column.name: value for column, value in zip(rows.ACCURACY, rows.PAPER_TABLE[row.key], strict=False)}
        for row in rows.MAIN
        if row.key in rows.PAPER_TABLE
    }
    second: dict[str, dict[str, float]] = {}
    for paper, measure in ((rows.PAPER_RANKED, rows.RANKED), (rows.PAPER_TOP, rows.TOP_ATTENTION)):
        for key, value in paper.items():
            second.setdefault(key, {})[measure.name] = value
    third = {key: {rows.RANKED.name: value} for key, value in rows.PAPER_CAPTION_RANKED.items()}
    swept = [rows.ROWS[NONE], *sorted((rows.ROWS[HINT], *rows.SWEPT), key=lambda row: float(row.hint["share"]))]
    amounts = (rows.ACCURACY[0], *(c for c in accuracy if c.name in ("same all", "train all")), rows.RANKED)
    return [
        _table(1, f"accuracy, in percent, in {section}", accuracy, rows.MAIN, seeds, answers, section, first),
        _table(0, f"what answers rest on, in {section}", rows.GROUNDING, rows.MAIN, seeds, answers, section, second),
        _table(0, f"more or fewer hints, in {section}", amounts, swept, seeds, answers, section),
        _table(
            *(0, f"captions and their visual words, in {section}", rows.CAPTION_MEASURES, rows.CAPTIONING),
            *(seeds, captions, section, third),
        ),
    ]


def _table(
    number: int,
    title: str,
    columns: Sequence[Column],
    listed: Sequence[HintRow],
    seeds: Sequence[int],
    scores: Scores,
    section: str,
    paper: dict[str, dict[str, float]] | None = None,
) -> Table:
    made = tuple(_row(row.key, seeds, scores, (paper or {}).get(row.key)) for row in listed)
    return Table(number, title, tuple(columns), made, section)


def _row(key: str, seeds: Sequence[int], scores: Scores, paper: dict[str, float] | None = None) -> Row:
    return Row(rows.ROWS[key].title, tuple(scores[key, seed] for seed in seeds), paper or {})


def _has(scores: Scores, column: Column) -> bool:
    return all(column.name in one for one in scores.values())


def section_sweeps(section: str, seeds: Sequence[int], answers: Scores) -> list[Sweep]:
    """Accuracy on changed priors and agreement with people over the share of training questions with hints."""
    amounts = {0.0: NONE, rows.HINT_PERCENT: HINT}
    amounts |= {100 * float(row.hint["share"]): row.key for row in rows.SWEPT}
    sweeps = []
    for measure, title in (
        (rows.ACCURACY[0], "accuracy where priors change"),
        (rows.RANKED, "rank correlation of gradients with people"),
    ):
        points = [
            (percent, *mean_interval([answers[key, seed][measure.name] for seed in seeds]))
            for percent, key in sorted(amounts.items())
            if percent <= _PLOTTED_PERCENT
        ]
        paper = rows.PAPER_SWEEP if measure is rows.ACCURACY[0] else ()
        across = "training questions with hints, %"
        sweeps.append(Sweep(f"{title}, {section}", across, measure.name, {"HINT": points}, paper, section))
    return sweeps


def section_claims(section: str, seeds: Sequence[int], answers: Scores, captions: Scores) -> list[Claim]:
    """The paper's claims and its critique's, judged over seeds."""
    place = section.removeprefix("the ").removeprefix("simulated ").removeprefix("real ")
    found = [_judged(plan, place, seeds, answers) for plan in rows.CLAIMS]
    found.append(_faithful(place, seeds, answers))
    found += [_judged(plan, f"{place}, captions", seeds, captions) for plan in rows.CAPTION_CLAIMS]
    return found


def _judged(plan: ClaimPlan, place: str, seeds: Sequence[int], scores: Scores) -> Claim:
    better, worse = (_row(key, seeds, scores) for key in (plan.better, plan.worse))
    named = Row(f"{place}: {better.name}", better.scores)
    return judge(f"{place}: {plan.text}", plan.measure, named, worse, plan.source)


def _faithful(place: str, seeds: Sequence[int], answers: Scores) -> Claim:
    """Two explanations of the same base models."""
    sides = {f"{place}: gradients": rows.TRUE_GRADIENTS, "attention": rows.TRUE_ATTENTION}
    gradients, attention = (
        Row(name, tuple({_TRUTH.name: answers[BASE, seed][measure.name]} for seed in seeds))
        for name, measure in sides.items()
    )
    return judge(f"{place}: gradients are truer to the model than attention", _TRUTH, gradients, attention)
