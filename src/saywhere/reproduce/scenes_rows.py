"""The rows, measures and claims of the scenes experiment: the paper's, and what they must be held against."""

from __future__ import annotations

from dataclasses import dataclass

from saywhere.reproduce.results import PAPER, Column
from saywhere.reproduce.scenes_world import LEVELS, OBJECT, SCENE

CONTROL = "a control that the paper does not have"


@dataclass(frozen=True, slots=True)
class SceneRow:
    """One network of the experiment. taught: the levels whose captions it learns from. from_objects: whether it goes on
    from the network that learnt captions of objects. asked: the level at which it is measured first."""

    key: str
    title: str
    taught: tuple[str, ...]
    from_objects: bool = True
    asked: str = SCENE

    @property
    def is_first(self) -> bool:
        """Whether it is the network that others go on from."""
        return self.key == BEFORE


BEFORE, AFTER, LONGER, ALL, SCRATCH = "objects", "scenes", "longer", "levels", "scratch"
ROWS = (
    SceneRow(BEFORE, "before: captions of objects", (OBJECT,), from_objects=False, asked=OBJECT),
    SceneRow(AFTER, "after: then captions of scenes", (SCENE,)),
    SceneRow(LONGER, "control: then more captions of objects", (OBJECT,), asked=OBJECT),
    SceneRow(ALL, "one network for all levels", LEVELS),
    SceneRow(SCRATCH, "control: captions of scenes alone", (SCENE,), from_objects=False),
)
TITLES = {row.key: row.title for row in ROWS}
DEPTHS = (3, 5, 7)
ABLATED = (1, 2, 3)
SPLITS = ("90/10", "70/30", "50/50")
F1S = ("micro", "macro", "weighted")
BLOCKS = ("all", "vision→vision", "vision→tag", "tag→vision")

ACCURACY = Column("scene named, %", digits=1)
CAPTIONS = (ACCURACY, *(Column(name) for name in ("BLEU-4", "ROUGE-L", "CIDEr")))
PAPER_CAPTIONS = {"BLEU-4": 0.491, "ROUGE-L": 0.677, "CIDEr": 1.680}
NAMING = Column("named things are there, %", digits=1)
RECALL = Column("told things named, %", digits=1)
NAMING_F1 = Column("naming F1", digits=1)
OBJECT_CIDER = Column("CIDEr, objects")
OBJECTS = (NAMING, RECALL, NAMING_F1, OBJECT_CIDER)
STD = Column("std, all", lower_is_better=True, digits=4)
EVENNESS = Column("evenness, all", digits=4)
MASS = Column("mass, all", digits=2)
ATTENTION = tuple(
    Column(f"{measure}, {block}", lower_is_better=measure == "std", digits=2 if measure == "mass" else 4)
    for measure in ("std", "mass", "evenness")
    for block in BLOCKS
)
OVERLAP = Column("AO@5, mean")
OVERLAP_CHANCE = Column("AO@5, mean, even attention")
DIAGNOSTIC = tuple(Column(f"{measure}@{depth}", digits=2) for measure in ("AO", "RBO", "IoU") for depth in DEPTHS)
CHANGED = Column("changed, %", lower_is_better=True, digits=1)
CHANGED_RANDOM = Column("changed, random things, %", lower_is_better=True, digits=1)
CHANGED_BY = tuple(Column(f"changed without {k}, %", lower_is_better=True, digits=1) for k in ABLATED)
CONFIDENCE = Column("confidence")
SHIFT = Column("shift", digits=4)
SHIFT_SPREAD = Column("spread of shifts", lower_is_better=True, digits=4)
LABEL_CHANGED = Column("place or things changed, %", lower_is_better=True, digits=1)
ABLATION = (CHANGED, *CHANGED_BY, LABEL_CHANGED, CHANGED_RANDOM, CONFIDENCE, SHIFT, SHIFT_SPREAD)
PAPER_ABLATION = {BEFORE: {CHANGED.name: 41.0}, AFTER: {CHANGED.name: 13.0}}

# Table 2: average overlap and IoU at 3, 5 and 7. Two of its IoU@7, 0.18 (room) and 0.53 (restaurant), cannot be: two
# sets of seven that share m have m / (14 − m), which is 0.17, 0.27, 0.4, 0.56 …
PAPER_SCENES = {
    "station": (0.88, 0.84, 0.87, 0.5, 0.66, 1.0),
    "street": (1.0, 0.9, 0.91, 1.0, 0.66, 1.0),
    "living room": (0.27, 0.25, 0.24, 0.2, 0.11, 0.18),
    "sea": (0.88, 0.84, 0.8, 0.5, 0.66, 0.55),
}
PAPER_SCENE_NAMES = {"street": "road", "living room": "room"}


def probe_column(probe: str, split: str, f1: str, ablated: bool = False) -> Column:
    """The name of a probe's measure, such as "forest 50/50 macro-F1 (A)"."""
    return Column(f"{probe} {split} {f1}-F1{' (A)' if ablated else ''}", digits=2)


PAPER_PROBES = {
    # Tables 4, 6 and 7: micro, macro, weighted; before and after, without and with ablation.
    ("forest", "90/10"): ((0.96, 0.71, 0.94), (1.0, 1.0, 1.0), (0.95, 0.69, 0.94), (0.99, 0.99, 0.99)),
    ("forest", "70/30"): ((0.94, 0.67, 0.92), (0.99, 0.97, 0.99), (0.93, 0.66, 0.91), (0.98, 0.94, 0.98)),
    ("forest", "50/50"): ((0.94, 0.67, 0.92), (0.99, 0.96, 0.99), (0.92, 0.66, 0.90), (0.98, 0.88, 0.97)),
    ("MLP", "50/50"): ((0.94, 0.67, 0.91), (0.98, 0.91, 0.98), (0.92, 0.66, 0.90), (0.98, 0.85, 0.97)),
}
RARE = Column("forest 50/50 F1, rare scenes")
MACRO = probe_column("forest", "50/50", "macro")
MACRO_ABLATED = probe_column("forest", "50/50", "macro", ablated=True)
SEP_FIRST, SEP_LAST = Column("[SEP], first layer"), Column("[SEP], last layer")


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """A sentence, the measure that decides it, and which row should be better at it."""

    text: str
    measure: Column
    better: str
    worse: str
    source: str = PAPER


CLAIMS = (
    ClaimPlan("after scene tuning attention is spread more evenly (lower std)", STD, AFTER, BEFORE),
    ClaimPlan("the same by normalised entropy, which does not fall with length", EVENNESS, AFTER, BEFORE, CONTROL),
    ClaimPlan("more evenly than after as much more training on objects", STD, AFTER, LONGER, CONTROL),
    ClaimPlan("scene captions change less when diagnostic things are taken away", CHANGED, AFTER, BEFORE),
    ClaimPlan("less than after as much more training on objects", CHANGED, AFTER, LONGER, CONTROL),
    ClaimPlan("captions of objects are told with more confidence", CONFIDENCE, BEFORE, AFTER),
    ClaimPlan("the confidence of scene captions shifts less under ablation", SHIFT_SPREAD, AFTER, BEFORE),
    ClaimPlan("probes find scenes better after scene tuning", MACRO, AFTER, BEFORE),
    ClaimPlan("… rare scenes, too", RARE, AFTER, BEFORE),
    ClaimPlan("… better than after as much more training on objects", MACRO, AFTER, LONGER, CONTROL),
    ClaimPlan("… with diagnostic things taken away, too", MACRO_ABLATED, AFTER, BEFORE),
    ClaimPlan("captions of objects first help scene captions", ACCURACY, AFTER, SCRATCH, CONTROL),
)
