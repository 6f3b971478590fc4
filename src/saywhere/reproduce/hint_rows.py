"""The rows, tables and claims of the HINT experiment: the paper's, and its critique's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from saywhere.reproduce.results import PAPER, Column

CRITIQUE = "its critique (Shrestha, Kafle and Kanan, ACL 2020)"
BASE, NONE, ALIGNED, HINT = "base", "none", "aligned", "hint"
HINT_PERCENT = 6.0
SWEEP_PERCENT = (1.5, 3.0, HINT_PERCENT, 12.0, 100.0)
"""How much of the training set is hinted, beside 0 %, which is `NONE`. The paper goes to 6 %."""
ANSWER_TYPES = ("yes/no", "number", "other")


@dataclass(frozen=True, slots=True)
class HintRow:
    """One way to go on from the base model. hint: as in a recipe's [model.hint]; empty for the base itself."""

    key: str
    title: str
    hint: dict[str, Any] = field(default_factory=dict)


def _hinted(key: str, title: str, percent: float = HINT_PERCENT, **hint: Any) -> HintRow:
    return HintRow(key, title, {"share": percent / 100, **hint})


CONTROLS = (
    _hinted("inverse", "inverse hints (1 − s)", hints="inverse"),
    _hinted("random", "random hints, fixed", hints="random"),
    _hinted("redrawn", "random hints, redrawn", hints="redrawn"),
    _hinted("permuted", "hints of other questions", hints="permuted"),
)
MAIN = (
    HintRow(BASE, "UpDn, before tuning"),
    HintRow(NONE, "UpDn, tuned without hints", {"hints": "none"}),
    _hinted(ALIGNED, "attention alignment", on="attention"),
    _hinted(HINT, "HINT"),
    *CONTROLS,
)
SWEPT = tuple(
    _hinted(f"hint-{percent:g}", f"HINT with {percent:g} %", percent)
    for percent in SWEEP_PERCENT
    if percent != HINT_PERCENT
)
CAPTIONING = tuple(row for row in MAIN if row.key in (BASE, NONE, ALIGNED, HINT, "random"))
ROWS = {row.key: row for row in (*MAIN, *SWEPT)}

ACCURACY = tuple(
    Column(f"{split} {kind}", digits=1) for split in ("changed", "same", "train") for kind in ("all", *ANSWER_TYPES)
)
RANKED = Column("ρ gradients, people")
RANKED_ATTENTION = Column("ρ attention, people")
TOP = Column("IoU top region")
TOP_ATTENTION = Column("IoU top, attention")
TRUE_GRADIENTS = Column("ρ gradients, occlusion")
TRUE_ATTENTION = Column("ρ attention, occlusion")
DELETION = Column("deletion area, gradients", lower_is_better=True)
INSERTION = Column("insertion area, gradients")
DROP = Column("drop without hinted", digits=1)
DROP_RANDOM = Column("drop without random", digits=1)
GROUNDING = (
    *(RANKED, RANKED_ATTENTION, TOP, TOP_ATTENTION, TRUE_GRADIENTS, TRUE_ATTENTION),
    *(DELETION, INSERTION, DROP, DROP_RANDOM),
)
CAPTION_MEASURES = (
    *(Column("CIDEr"), Column("BLEU-4"), Column("loss per word", lower_is_better=True)),
    *(RANKED, RANKED_ATTENTION, TOP, TRUE_GRADIENTS, TRUE_ATTENTION),
)
PAPER_TABLE = {
    BASE: (39.49, 45.21, 11.96, 42.98, 62.85, 80.89, 42.78, 54.44),
    ALIGNED: (39.37, 43.02, 11.89, 45.00, 63.24, 80.99, 42.55, 55.22),
    HINT: (46.73, 67.27, 10.61, 45.88, 63.38, 81.18, 42.99, 55.56),
}
"""Table 1 of the paper: VQA-CP test stands beside "changed", VQA v2 val beside "same"; in the order of `ACCURACY`."""
PAPER_RANKED = {BASE: -0.09, HINT: 0.18}
PAPER_TOP = {BASE: 0.57, HINT: 0.63}
PAPER_CAPTION_RANKED = {BASE: 0.008, HINT: 0.17}
PAPER_SWEEP = ((0.0, 39.49), (6.0, 46.73))
"""Of the paper's plot only the ends are given in numbers."""


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """`better` is above `worse` in a measure, says a source."""

    text: str
    measure: Column
    better: str
    worse: str
    source: str = PAPER


_CHANGED, _SAME, _TRAINED = (next(c for c in ACCURACY if c.name == f"{s} all") for s in ("changed", "same", "train"))

CLAIMS = (
    ClaimPlan("HINT reduces language bias: it is better where priors change", _CHANGED, HINT, BASE),
    ClaimPlan("… also than as many steps without hints", _CHANGED, HINT, NONE),
    ClaimPlan("HINT does not cost accuracy where priors stay, it adds some", _SAME, HINT, BASE),
    ClaimPlan("HINT is better than attention alignment where priors change", _CHANGED, HINT, ALIGNED),
    ClaimPlan("1.5 % of hints are enough to be better where priors change", _CHANGED, "hint-1.5", NONE),
    ClaimPlan("HINT brings gradients nearer to people", RANKED, HINT, BASE),
    ClaimPlan("… also than as many steps without hints", RANKED, HINT, NONE),
    ClaimPlan("HINT also brings attention nearer to people", TOP_ATTENTION, HINT, BASE),
    ClaimPlan("Without hinted regions a hinted model loses more than a base model", DROP, HINT, BASE),
    ClaimPlan("Hints that mean nothing help as much: random ones, fixed", _CHANGED, "random", NONE, CRITIQUE),
    ClaimPlan("… random ones, redrawn", _CHANGED, "redrawn", NONE, CRITIQUE),
    ClaimPlan("… those of other questions", _CHANGED, "permuted", NONE, CRITIQUE),
    ClaimPlan("… and wrong ones, the inverse", _CHANGED, "inverse", NONE, CRITIQUE),
    ClaimPlan("Human hints are no better than random ones where priors change", _CHANGED, "random", HINT, CRITIQUE),
    ClaimPlan("The loss regularises: training accuracy falls", _TRAINED, NONE, HINT, CRITIQUE),
)
CAPTION_CLAIMS = (
    ClaimPlan("HINT brings the gradients of visual words nearer to the things they name", RANKED, HINT, BASE),
    ClaimPlan("… also than as many steps without hints", RANKED, HINT, NONE),
    ClaimPlan("Captions stay as good", Column("CIDEr"), HINT, NONE),
)
