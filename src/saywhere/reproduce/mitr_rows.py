"""The rows of MITR's tables: what each model learns, what the paper reports for it, and what the paper claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saywhere.models.mitr.batch import GUIDED_BOXES
from saywhere.reproduce.results import Column

CAPTION = tuple(Column(name) for name in ("BLEU-1", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr", "scene-graph F"))
TRACE = (Column("LBM (k=0)", lower_is_better=True), Column("LBM (k=1)", lower_is_better=True))


@dataclass(frozen=True, slots=True)
class RowPlan:
    """One model. key: its folder. title: as in tables. model: keys of the recipe's [model]. tests: what it can do.

    guided: whether it learns from captions with key boxes, not from narratives. start: key of the row whose weights it
    starts with.
    """

    key: str
    title: str
    model: dict[str, Any]
    tests: tuple[str, ...]
    guided: bool = False
    start: str = ""


def _learns(trace: float = 0, caption: float = 0, cycle: float = 0, joint: float = 0, **more: Any) -> dict[str, Any]:
    return {"trace": trace, "caption": caption, "cycle": cycle, "joint": joint, **more}


_BOTH = ("trace", "caption")
_GUIDED = _learns(caption=1, guided=GUIDED_BOXES)
ROWS = {
    row.key: row
    for row in (
        RowPlan("baseline-trace", "Baseline, Task 1", {"baseline": "trace"}, ("trace",)),
        RowPlan("baseline-caption", "Baseline, Task 2", {"baseline": "caption"}, ("caption",)),
        RowPlan("baseline-describe", "Baseline, image to caption", {"baseline": "describe"}, ("joint",)),
        RowPlan("task1", "MITR, Task 1", _learns(trace=1), ("trace",)),
        RowPlan("task2", "MITR, Task 2", _learns(caption=0.3), ("caption",)),
        RowPlan("task12", "MITR, Task 1 + 2", _learns(trace=1, caption=0.3), _BOTH),
        RowPlan(
            "task12-cycle-s",
            "MITR, Task 1 + 2 + cycle_s",
            _learns(trace=1, caption=0.3, cycle=0.1, cycle_kind="segments"),
            _BOTH,
        ),
        RowPlan("task12-cycle-b", "MITR, Task 1 + 2 + cycle_b", _learns(trace=1, caption=0.3, cycle=0.1), _BOTH),
        RowPlan(
            "task12-cycle-b-2",
            "MITR (2 layers), Task 1 + 2 + cycle_b",
            _learns(trace=1, caption=0.3, cycle=0.1, layers=2),
            _BOTH,
        ),
        RowPlan("task3", "MITR, Task 3", _learns(joint=1, mask_rate=0.0), ("joint",)),
        RowPlan("task3-mask", "MITR, Task 3 + random mask", _learns(joint=1), ("joint",)),
        RowPlan(
            "task123-mask",
            "MITR, Task 3 + 1 + 2 + random mask",
            _learns(trace=1, caption=0.3, joint=1),
            ("trace", "caption", "joint"),
        ),
        # With --full: guided captions (Table 6), the number of layers (Table 7), the weight of the caption (Table 8).
        RowPlan("guided-baseline", "Baseline, guided", {**_GUIDED, "baseline": "caption"}, ("guided",), guided=True),
        RowPlan("guided", "MITR, guided, without pre-training", _GUIDED, ("guided",), guided=True),
        RowPlan(
            "guided-pretrained",
            "MITR, guided, pre-trained on Task 1 + 2 + cycle_b",
            _GUIDED,
            ("guided",),
            guided=True,
            start="task12-cycle-b",
        ),
        RowPlan(
            "task12-cycle-b-3",
            "MITR (3 layers), Task 1 + 2 + cycle_b",
            _learns(trace=1, caption=0.3, cycle=0.1, layers=3),
            _BOTH,
        ),
        RowPlan("task12-1.0", "MITR, Task 1 + 2, λ2 = 1.0", _learns(trace=1, caption=1.0), _BOTH),
        RowPlan("task12-0.5", "MITR, Task 1 + 2, λ2 = 0.5", _learns(trace=1, caption=0.5), _BOTH),
        RowPlan("task12-0.1", "MITR, Task 1 + 2, λ2 = 0.1", _learns(trace=1, caption=0.1), _BOTH),
    )
}


@dataclass(frozen=True, slots=True)
class TablePlan:
    """One table. tests: which of a row's it shows. rows: key → the paper's numbers, in the order of the columns."""

    number: int
    title: str
    tests: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: dict[str, tuple[float | None, ...]]
    full: bool = False


def _paper(*numbers: float | None) -> tuple[float | None, ...]:
    return numbers


_SPICE_IS_OTHER = None  # The paper reports SPICE; ours is another measure, so no number stands beside it.
TABLES = (
    TablePlan(
        5,
        "Task 1, a trace for a caption",
        ("trace",),
        TRACE,
        {
            "baseline-trace": _paper(0.208, 0.204),
            "task1": _paper(0.171, 0.159),
            "task12": _paper(0.169, 0.157),
            "task12-cycle-s": _paper(0.165, 0.156),
            "task12-cycle-b": _paper(0.166, 0.155),
            "task12-cycle-b-2": _paper(0.163, 0.154),
        },
    ),
    TablePlan(
        2,
        "Task 2, a caption along a trace",
        ("caption",),
        CAPTION,
        {
            "baseline-caption": _paper(0.563, 0.255, 0.240, 0.453, 0.997, _SPICE_IS_OTHER),
            "task2": _paper(0.577, 0.257, 0.245, 0.456, 1.213, _SPICE_IS_OTHER),
            "task12": _paper(0.586, 0.272, 0.252, 0.470, 1.329, _SPICE_IS_OTHER),
            "task12-cycle-s": _paper(0.596, 0.282, 0.257, 0.476, 1.390, _SPICE_IS_OTHER),
            "task12-cycle-b": _paper(0.598, 0.286, 0.258, 0.479, 1.407, _SPICE_IS_OTHER),
            "task12-cycle-b-2": _paper(0.607, 0.292, 0.263, 0.487, 1.485, _SPICE_IS_OTHER),
        },
    ),
    TablePlan(
        3,
        "Task 3, caption and trace from the image alone",
        ("joint",),
        (*CAPTION, *TRACE),
        {
            "baseline-describe": _paper(0.355, 0.087, 0.155, 0.307, 0.310, _SPICE_IS_OTHER, None, None),
            "task3": _paper(0.387, 0.118, 0.168, 0.316, 0.170, _SPICE_IS_OTHER, 0.387, 0.369),
            "task3-mask": _paper(0.395, 0.128, 0.184, 0.328, 0.219, _SPICE_IS_OTHER, 0.308, 0.292),
            "task123-mask": _paper(0.417, 0.125, 0.178, 0.323, 0.216, _SPICE_IS_OTHER, 0.283, 0.267),
        },
    ),
    TablePlan(
        6,
        "Guided captions, along boxes of what is to be told",
        ("guided",),
        CAPTION,
        {
            # The paper has no row for a standard transformer here.
            "guided-baseline": _paper(None, None, None, None, None, _SPICE_IS_OTHER),
            "guided": _paper(0.463, 0.182, 0.219, 0.466, 1.746, _SPICE_IS_OTHER),
            "guided-pretrained": _paper(0.474, 0.189, 0.225, 0.475, 1.819, _SPICE_IS_OTHER),
        },
        full=True,
    ),
    TablePlan(
        7,
        "The number of layers",
        _BOTH,
        (*CAPTION, *TRACE),
        {
            "task12-cycle-b": _paper(0.598, 0.286, 0.258, 0.479, 1.407, _SPICE_IS_OTHER, 0.166, 0.155),
            "task12-cycle-b-2": _paper(0.607, 0.292, 0.263, 0.487, 1.485, _SPICE_IS_OTHER, 0.163, 0.154),
            "task12-cycle-b-3": _paper(0.604, 0.289, 0.261, 0.485, 1.444, _SPICE_IS_OTHER, 0.197, 0.191),
        },
        full=True,
    ),
    TablePlan(
        8,
        "The weight of the caption, λ2",
        _BOTH,
        (*CAPTION, *TRACE),
        {
            "task12-1.0": _paper(0.589, 0.272, 0.254, 0.472, 1.346, _SPICE_IS_OTHER, 0.187, 0.178),
            "task12-0.5": _paper(0.595, 0.278, 0.256, 0.476, 1.368, _SPICE_IS_OTHER, 0.179, 0.169),
            "task12": _paper(0.586, 0.272, 0.252, 0.470, 1.329, _SPICE_IS_OTHER, 0.169, 0.157),
            "task12-0.1": _paper(0.595, 0.279, 0.256, 0.474, 1.375, _SPICE_IS_OTHER, 0.161, 0.150),
        },
        full=True,
    ),
)

# Sentence, the test it is about, the measure, the row said to be better, the row said to be worse.
CLAIMS = (
    ("MITR finds better traces than a standard transformer", "trace", "LBM (k=0)", "task1", "baseline-trace"),
    ("MITR writes better captions along a trace than one", "caption", "CIDEr", "task2", "baseline-caption"),
    ("Learning captions too makes traces better", "trace", "LBM (k=0)", "task12", "task1"),
    ("Learning traces too makes captions better", "caption", "CIDEr", "task12", "task2"),
    ("cycle_s makes traces better", "trace", "LBM (k=0)", "task12-cycle-s", "task12"),
    ("cycle_s makes captions better", "caption", "CIDEr", "task12-cycle-s", "task12"),
    ("cycle_b makes traces better", "trace", "LBM (k=0)", "task12-cycle-b", "task12"),
    ("cycle_b makes captions better", "caption", "CIDEr", "task12-cycle-b", "task12"),
    ("Pointing while speaking makes captions better", "joint", "BLEU-4", "task3", "baseline-describe"),
    ("Random masking makes joint captions better", "joint", "CIDEr", "task3-mask", "task3"),
    ("Random masking makes joint traces better", "joint", "LBM (k=0)", "task3-mask", "task3"),
    ("Tasks 1 and 2 make joint traces better", "joint", "LBM (k=0)", "task123-mask", "task3-mask"),
    ("Pre-training on traces makes guided captions better", "guided", "CIDEr", "guided-pretrained", "guided"),
)
