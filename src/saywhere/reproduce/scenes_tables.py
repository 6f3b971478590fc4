"""What the networks of the scenes experiment were measured at, as tables and claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from saywhere.reproduce import scenes_rows as rows
from saywhere.reproduce.results import PAPER, Claim, Column, Row, Table, judge
from saywhere.reproduce.scenes_measure import Found
from saywhere.reproduce.scenes_rows import AFTER, ALL, BEFORE, LONGER, SCRATCH

FoundBy = Mapping[tuple[str, int], Found]
"""Row and seed → what was measured."""

_OVERLAP = Column("AO@5", digits=3)
_SEP = Column("attention to [SEP]")
_SHARE = Column("F1 of the forest, 50/50, macro")


def scenes_tables(seeds: Sequence[int], found: FoundBy) -> list[Table]:
    """In the paper's order: captions, attention, diagnosticity, ablation, probes."""
    paper_scene = {AFTER: rows.PAPER_CAPTIONS}
    attention = (BEFORE, AFTER, LONGER, ALL, SCRATCH)
    tables = [
        _table(1, "captions of scenes", rows.CAPTIONS, (AFTER, ALL, SCRATCH), seeds, found, paper_scene),
        _table(0, "captions of objects", rows.OBJECTS, (BEFORE, LONGER, ALL), seeds, found),
    ]
    for measure in ("std", "evenness", "mass"):
        columns = tuple(column for column in rows.ATTENTION if column.name.startswith(measure))
        made = _table(0, f"attention in the first layer: {measure}", columns, attention, seeds, found)
        # More attention is neither better nor worse.
        tables.append(replace(made, compete=measure != "mass"))
    tables += [_scene_table(seeds, found, row) for row in (AFTER, BEFORE)]
    tables.append(
        _table(0, "captions after things are taken away", rows.ABLATION, attention, seeds, found, rows.PAPER_ABLATION)
    )
    return tables + [
        _probe_table(probe, split, seeds, found) for probe in ("forest", "MLP") for split in reversed(rows.SPLITS)
    ]


def _scores(found: Found) -> dict[str, float]:
    return {name: float("nan") if value is None else value for name, value in found.scores.items()}


def row_of(key: str, seeds: Sequence[int], found: FoundBy, paper: Mapping[str, float] | None = None) -> Row:
    """All seeds of one network."""
    return Row(rows.TITLES[key], tuple(_scores(found[key, seed]) for seed in seeds), dict(paper or {}))


def _table(
    number: int,
    title: str,
    columns: Sequence[Column],
    keys: Sequence[str],
    seeds: Sequence[int],
    found: FoundBy,
    paper: Mapping[str, Mapping[str, float]] | None = None,
) -> Table:
    shown = [column.name for column in columns]
    made = []
    for key in keys:
        row = row_of(key, seeds, found, (paper or {}).get(key))
        made.append(replace(row, scores=tuple({name: one[name] for name in shown} for one in row.scores)))
    return Table(number, title, tuple(columns), tuple(made))


def _scene_table(seeds: Sequence[int], found: FoundBy, key: str) -> Table:
    """One row for each place: the most attended things against the most frequent ones."""
    made = []
    for place in found[key, seeds[0]].scenes:
        measured = tuple(
            {name: float("nan") if v is None else v for name, v in found[key, seed].scenes[place].measures.items()}
            for seed in seeds
        )
        given = rows.PAPER_SCENES.get(place, ()) if key == AFTER else ()
        columns = [column.name for column in rows.DIAGNOSTIC if not column.name.startswith("RBO")]
        paper = dict(zip(columns, given, strict=False))
        called = rows.PAPER_SCENE_NAMES.get(place)
        made.append(Row(f"{place} (the paper's {called})" if called and given else place, measured, paper))
    if key == AFTER:
        even = {f"{column.name}, even": column.name for column in rows.DIAGNOSTIC}
        means = tuple(_means(found[key, seed], even) for seed in seeds)
        made.append(Row("mean over places", tuple(_means(found[key, seed], None) for seed in seeds)))
        made.append(Row("… if attention were even", means))
    when = "after" if key == AFTER else "before"
    title = f"most attended against most frequent things, {when} scene tuning"
    number = 2 if key == AFTER else 0
    return Table(number, title, rows.DIAGNOSTIC, tuple(made), rows_are="Scene", compete=False)


def _means(found: Found, renamed: Mapping[str, str] | None) -> dict[str, float]:
    """Means over places of measures, or of those that are renamed."""
    names = renamed or {column.name: column.name for column in rows.DIAGNOSTIC}
    means = {}
    for old, new in names.items():
        values = [one.measures[old] for one in found.scenes.values()]
        known = [value for value in values if value is not None]
        means[new] = sum(known) / len(known) if known else float("nan")
    return means


def _probe_table(probe: str, split: str, seeds: Sequence[int], found: FoundBy) -> Table:
    columns = tuple(Column(f"{f1}-F1", digits=2) for f1 in rows.F1S)
    paper = rows.PAPER_PROBES.get((probe, split), ((), (), (), ()))
    given = {(BEFORE, False): paper[0], (AFTER, False): paper[1], (BEFORE, True): paper[2], (AFTER, True): paper[3]}
    made = []
    for ablated in (False, True):
        for key in (BEFORE, AFTER, LONGER, SCRATCH):
            title = rows.TITLES[key] + (", ablated" if ablated else "")
            made.append(
                _probed(title, probe, split, ablated, [found[key, s] for s in seeds], given.get((key, ablated)))
            )
    for baseline, title in (("chance", "labels drawn by chance"), ("commonest", "always the commonest place")):
        numbers = (0.16, 0.12, 0.16) if baseline == "chance" and split == "50/50" and probe == "forest" else None
        made.append(_probed(title, baseline, split, False, [found[BEFORE, s] for s in seeds], numbers))
    number = {"forest": 7, "MLP": 6}[probe] if any(paper) else 0
    name = {"forest": "a random forest", "MLP": "an MLP"}[probe]
    return Table(number, f"{name} tells the place from mean states, {split}", columns, tuple(made))


def _probed(
    title: str, probe: str, split: str, ablated: bool, found: Sequence[Found], paper: Sequence[float] | None
) -> Row:
    measured = []
    for one in found:
        scores = _scores(one)
        measured.append({f"{f1}-F1": scores[rows.probe_column(probe, split, f1, ablated).name] for f1 in rows.F1S})
    given = dict(zip([f"{f1}-F1" for f1 in rows.F1S], paper or (), strict=False))
    return Row(title, tuple(measured), given)


def scenes_claims(seeds: Sequence[int], found: FoundBy) -> list[Claim]:
    """The paper's claims and their controls, judged over seeds."""
    claims = []
    for plan in rows.CLAIMS:
        better, worse = (row_of(key, seeds, found) for key in (plan.better, plan.worse))
        claims.append(judge(plan.text, plan.measure, better, worse, plan.source))
    after = [_scores(found[AFTER, seed]) for seed in seeds]
    sides = (
        ("scene captions rest on frequent things more than even attention would", PAPER, _OVERLAP),
        ("attention gathers on [SEP] in higher layers", PAPER, _SEP),
        ("taking diagnostic things away costs the probe something", rows.CONTROL, _SHARE),
    )
    pairs = (
        {"attention after tuning": rows.OVERLAP, "even attention": rows.OVERLAP_CHANCE},
        {"the last layer": rows.SEP_LAST, "the first layer": rows.SEP_FIRST},
        {"all things there": rows.MACRO, "without them": rows.MACRO_ABLATED},
    )
    for (text, source, measure), pair in zip(sides, pairs, strict=True):
        # Two measures of the same networks.
        better, worse = (
            Row(name, tuple({measure.name: score[column.name]} for score in after)) for name, column in pair.items()
        )
        claims.append(judge(text, measure, better, worse, source))
    return claims
