"""The rows, claims and tables of `saywhere reproduce hint`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from saywhere.reproduce import hint_measure as measures
from saywhere.reproduce.claims import Claim, ClaimPlan, judge_measures, judge_plan, mean_interval
from saywhere.reproduce.experiment import RowPlan
from saywhere.reproduce.hint_data import BALANCED
from saywhere.reproduce.hint_measure import ACCURACY, BY_OCCLUSION, PRIMARY, RANKED, TOP_ATTENTION
from saywhere.reproduce.results import Sweep
from saywhere.reproduce.tables import MeasureColumn, Scoreboard, Table

CRITIQUE = "its critique (Shrestha, Kafle and Kanan, ACL 2020)"
OURS = "this report itself"
BASE, NONE, ALIGNED, HINT, BY_INPUT, BLIND = "base", "none", "aligned", "hint", "hint-input", "blind"
HINT_PERCENT = 6.0
SWEEP_PERCENT = (1.5, 3.0, HINT_PERCENT, 12.0, 100.0)
"""How much of the training set is hinted, beside 0 %, which is `NONE`. The paper goes to 6 %."""
_PLOTTED_PERCENT = 12.0
_POINT = 1.0
"""Of accuracy: rows that differ by less count as equal."""
_CIDER_MARGIN = 0.05


@dataclass(frozen=True, kw_only=True)
class HintRow(RowPlan):
    """One way to go on from the base model. hint: as in a recipe's [model.hint]; empty for a network that begins.

    train_split: which questions it learns from.
    """

    hint: dict[str, Any] = field(default_factory=dict)
    start: str = BASE
    train_split: str = "train"


def _hinted(key: str, title: str, percent: float = HINT_PERCENT, **hint: Any) -> HintRow:
    return HintRow(key=key, title=title, hint={"share": percent / 100, **hint})


BASE_ROW = HintRow(key=BASE, title="UpDn, before tuning", start="")
CEILING_ROW = HintRow(key=BALANCED, title="ceiling: UpDn, balanced training", start="", train_split=BALANCED)
TUNED = (
    HintRow(key=NONE, title="UpDn, tuned without hints", hint={"hints": "none"}),
    _hinted(ALIGNED, "attention alignment", on="attention"),
    _hinted(HINT, "HINT"),
    _hinted(BY_INPUT, "HINT on gradient × input", on="gradient_times_input"),
    _hinted("inverse", "inverse hints (1 − s)", hints="inverse"),
    _hinted("random", "random hints", hints="random"),
    _hinted("permuted", "hints shuffled over regions", hints="permuted"),
)
FREE_VIEW = "free-view"
FREE_VIEW_ROW = _hinted(FREE_VIEW, "looks without a question (SALICON)", hints="free_view")
MAIN = (CEILING_ROW, BASE_ROW, *TUNED)
SWEPT = tuple(
    _hinted(f"hint-{percent:g}", f"HINT with {percent:g} %", percent)
    for percent in SWEEP_PERCENT
    if percent != HINT_PERCENT
)
CAPTIONING = tuple(row for row in MAIN if row.key in (BASE, NONE, HINT, BY_INPUT, "random"))
ROWS = {row.key: row for row in (*MAIN, *SWEPT)}
TITLES = {BLIND: "blind: the commonest answer to the question's text"} | {
    row.key: row.title for row in (*ROWS.values(), FREE_VIEW_ROW)
}

# Table 1 of the paper: VQA-CP test stands beside "changed", VQA v2 val beside "same"; in the order of `ACCURACY`.
_PAPER_ACCURACY = {
    BASE: (39.49, 45.21, 11.96, 42.98, 62.85, 80.89, 42.78, 54.44),
    ALIGNED: (39.37, 43.02, 11.89, 45.00, 63.24, 80.99, 42.55, 55.22),
    HINT: (46.73, 67.27, 10.61, 45.88, 63.38, 81.18, 42.99, 55.56),
}
_PAPER_GROUNDING = {
    BASE: {RANKED.name: -0.09, TOP_ATTENTION.name: 0.57},
    HINT: {RANKED.name: 0.18, TOP_ATTENTION.name: 0.63},
}
_PAPER_CAPTIONS = {BASE: {RANKED.name: 0.008}, HINT: {RANKED.name: 0.17}}
_PAPER_SWEEP = ((0.0, 39.49), (6.0, 46.73))
"""Of the paper's plot only the ends are given in numbers."""

_CHANGED, _SAME, _TRAINED = (next(c for c in ACCURACY if c.name == f"{s} all") for s in ("changed", "same", "train"))
_POPE = MeasureColumn("pope all", digits=1)
_TRUTH = MeasureColumn("ρ with occlusion")
CLAIMS = (
    ClaimPlan("HINT reduces language bias: it is better where priors change", PRIMARY, HINT, BASE),
    ClaimPlan("… also than as many steps without hints", PRIMARY, HINT, NONE),
    ClaimPlan("… also by gradient × input", PRIMARY, BY_INPUT, NONE),
    ClaimPlan("HINT does not cost accuracy where priors stay", _SAME, HINT, NONE, margin=_POINT),
    ClaimPlan("HINT is better than attention alignment where priors change", PRIMARY, HINT, ALIGNED),
    ClaimPlan("1.5 % of hints are enough to be better where priors change", PRIMARY, "hint-1.5", NONE),
    ClaimPlan("HINT brings what answers rest on nearer to people", BY_OCCLUSION, HINT, NONE),
    ClaimPlan("… by gradient × input, too", BY_OCCLUSION, BY_INPUT, NONE),
    ClaimPlan("HINT brings gradients nearer to people", RANKED, HINT, NONE),
    ClaimPlan("HINT also brings attention nearer to people", TOP_ATTENTION, HINT, BASE),
    ClaimPlan("Without hinted regions a hinted model loses more than a base model", measures.DROP, HINT, BASE),
    ClaimPlan("Hints that mean nothing help as much: random ones", PRIMARY, "random", NONE, CRITIQUE),
    ClaimPlan("… those shuffled over regions", PRIMARY, "permuted", NONE, CRITIQUE),
    ClaimPlan("… and wrong ones, the inverse", PRIMARY, "inverse", NONE, CRITIQUE),
    ClaimPlan("Human hints are as good as random ones where priors change", PRIMARY, "random", HINT, CRITIQUE, _POINT),
    ClaimPlan("The loss regularises: training accuracy falls", _TRAINED, NONE, HINT, CRITIQUE),
)
OUR_CLAIMS = (
    ClaimPlan("Balanced training helps where priors change: there is something to gain", PRIMARY, BALANCED, BASE, OURS),
    ClaimPlan("HINT changes accuracy by less than a point where priors change", PRIMARY, HINT, NONE, OURS, _POINT),
    ClaimPlan("… and so does HINT by gradient × input", PRIMARY, BY_INPUT, NONE, OURS, _POINT),
    ClaimPlan("… and so do hints that mean nothing, random ones", PRIMARY, "random", NONE, OURS, _POINT),
)
"""What there is to gain; and, with the margin of the claims above, how little was gained where nothing helped."""
FREE_VIEW_CLAIMS = (
    ClaimPlan("What a question is about teaches more than looks without it", PRIMARY, HINT, FREE_VIEW, OURS),
    ClaimPlan("… also by what answers rest on", BY_OCCLUSION, HINT, FREE_VIEW, OURS),
    ClaimPlan("Looks without a question help where priors change", PRIMARY, FREE_VIEW, NONE, OURS),
)
CAPTION_CLAIMS = (
    ClaimPlan("HINT brings the gradients of visual words nearer to the things they name", RANKED, HINT, NONE),
    ClaimPlan("… by gradient × input, what they rest on", BY_OCCLUSION, BY_INPUT, NONE),
    ClaimPlan("Captions stay as good", MeasureColumn("CIDEr"), HINT, NONE, margin=_CIDER_MARGIN),
)


def section_tables(answers: Scoreboard, captions: Scoreboard) -> list[Table]:
    """Accuracy, grounding and, apart, the amount of hints; then captions."""
    section = answers.section
    main = _there(MAIN, answers)
    swept = [NONE, *sorted((HINT, *_there(SWEPT, answers)), key=lambda key: float(ROWS[key].hint["share"]))]
    amounts = (PRIMARY, _CHANGED, _SAME, _TRAINED, RANKED, BY_OCCLUSION)
    return [
        *answer_tables(answers, main),
        answers.table(0, f"more or fewer hints, in {section}", amounts, swept),
        captions.table(
            *(0, f"captions and their visual words, in {section}", measures.CAPTION_MEASURES),
            *(_there(CAPTIONING, captions), _PAPER_CAPTIONS),
        ),
    ]


def _there(rows: Sequence[HintRow], board: Scoreboard) -> list[str]:
    """Keys of the rows that were trained."""
    return [row.key for row in rows if (row.key, board.seeds[0]) in board.scores]


def answer_tables(answers: Scoreboard, main: Sequence[str]) -> list[Table]:
    """Accuracy, with the blind table first, and what answers rest on."""
    section = answers.section
    has_pope = all(_POPE.name in one for (key, _), one in answers.scores.items() if key != BLIND)
    asked = {name for one in answers.scores.values() for name in one}
    accuracy = (*(column for column in ACCURACY if column.name in asked), *([_POPE] if has_pope else []))
    first = {
        key: {column.name: value for column, value in zip(ACCURACY, values, strict=False)}
        for key, values in _PAPER_ACCURACY.items()
    }
    return [
        answers.table(1, f"accuracy, in percent, in {section}", (PRIMARY, *accuracy), [BLIND, *main], first),
        answers.table(0, f"what answers rest on, in {section}", measures.GROUNDING, main, _PAPER_GROUNDING),
    ]


def section_sweeps(answers: Scoreboard) -> list[Sweep]:
    """Accuracy on changed priors and agreement with people over the share of training questions with hints."""
    amounts = {0.0: NONE, HINT_PERCENT: HINT} | {
        100 * float(ROWS[key].hint["share"]): key for key in _there(SWEPT, answers)
    }
    sweeps = []
    for measure, title, paper in (
        (PRIMARY, "accuracy where priors change", _PAPER_SWEEP),
        (RANKED, "rank correlation of gradients with people", ()),
    ):
        points = [
            (percent, *mean_interval(answers.values(key, measure.name)))
            for percent, key in sorted(amounts.items())
            if percent <= _PLOTTED_PERCENT
        ]
        name, across = f"{title}, {answers.section}", "training questions with hints, %"
        sweeps.append(Sweep(name, across, measure.name, {"HINT": points}, paper, answers.section))
    return sweeps


def section_claims(answers: Scoreboard, captions: Scoreboard) -> list[Claim]:
    """The paper's claims and its critique's, judged over seeds."""
    place = answers.section.removeprefix("the ").removeprefix("simulated ").removeprefix("real ")
    return [
        *answer_claims(answers, place),
        *(judge_plan(plan, captions, f"{place}, captions") for plan in CAPTION_CLAIMS),
    ]


def answer_claims(answers: Scoreboard, place: str) -> list[Claim]:
    """Those about answers whose rows are there. place: which data they are about."""
    there = {key for key, _ in answers.scores}
    plans = (*CLAIMS, *OUR_CLAIMS, *(FREE_VIEW_CLAIMS if FREE_VIEW in there else ()))
    sides = {f"{place}: gradients": measures.TRUE_GRADIENTS, "attention": measures.TRUE_ATTENTION}
    truer = f"{place}: gradients are truer to the model than attention"
    return [
        *(judge_plan(plan, answers, place) for plan in plans if {plan.better, plan.worse} <= there),
        judge_measures(truer, _TRUTH, sides, BASE, answers),
    ]


def asked_for(answers: Scoreboard) -> str:
    """The two numbers that this experiment was asked for."""

    def gain(measure: str) -> float:
        return answers.mean(HINT, measure) - answers.mean(BASE, measure)

    return (
        f"In {answers.section}, HINT changes accuracy on changed priors by {gain(PRIMARY.name):+.1f} points (asked: "
        f"+5) and the rank correlation with people by {gain(RANKED.name):+.2f} (asked: +0.2), against the base."
    )
