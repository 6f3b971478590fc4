"""The report: what it says, that it stands alone, and that nothing odd breaks it."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.core import AttentionMap, InvalidFile, InvalidValue, Narrative, Trace, Utterance
from saywhere.plots.heats import HeatPanel
from saywhere.plots.palette import LIGHT
from saywhere.reproduce._cells import difference, grid, number, opening, probability, sweep_rows
from saywhere.reproduce._markdown import _safe as markdown_safe
from saywhere.reproduce._markdown import markdown
from saywhere.reproduce._page import page as page_of
from saywhere.reproduce._pictures import draw_sweep
from saywhere.reproduce._sheets import TraceSheet
from saywhere.reproduce.claims import Claim, judge
from saywhere.reproduce.report import render, write_report
from saywhere.reproduce.results import (
    Example,
    HeatExample,
    Illustration,
    Line,
    Report,
    Results,
    Sweep,
    load_report,
)
from saywhere.reproduce.tables import MeasureColumn, ModelRow, Table

NAN = float("nan")
INF = float("inf")
LBM, CIDER = MeasureColumn("LBM (k=0)", lower_is_better=True), MeasureColumn("CIDEr")
BASE = ModelRow("Baseline", ({"LBM (k=0)": 0.30}, {"LBM (k=0)": 0.32}, {"LBM (k=0)": 0.31}), {"LBM (k=0)": 0.208})
OURS = ModelRow(
    "MITR",
    ({"LBM (k=0)": 0.20, "CIDEr": 1.0}, {"LBM (k=0)": 0.21, "CIDEr": NAN}, {"LBM (k=0)": 0.22, "CIDEr": 1.2}),
    {"LBM (k=0)": 0.171},
)
EVIL = "<script>alert(1)</script>|*a_b*\n# x\x07\ud800"
CORNER = AttentionMap([(1.0, 0.0), (0.0, 0.0)])
CRITIQUE = "its critique"
WALK = Trace([(0.1, 0.2, 0.0), (0.5, 0.5, 1.0), (0.9, 0.3, 2.0)])


def spoken(text: str, trace: Trace = WALK, origin: str = "human") -> Narrative:
    words = tuple(Utterance(word, i * 0.5, i * 0.5 + 0.5) for i, word in enumerate(text.split()))
    return Narrative("7", text, words, trace, origin=origin)


def results(**changes: object) -> Results:
    whole = Results(
        title="MITR, run anew",
        paper="Meng et al. 2021",
        settings={"data": "world", "sizes": {"training": 4000}, "minutes": 3.5, "nothing": None, "cached": True},
        made_by={"saywhere": "0.1.0", "git": "abc123"},
        seeds=(0, 1, 2),
        tables=(Table(5, "trace generation", (LBM, CIDER), (BASE, OURS)),),
        claims=(judge("MITR beats the baseline.", LBM, OURS, BASE),),
        examples=(Example("photo.png", spoken("a cat sits"), {"MITR": spoken("one cat", origin="mitr")}),),
        curves={"MITR": [(0, 1.0), (10, 0.5)], "Baseline": [(0, 1.0), (10, 0.8)]},
        remarks=("The cycle loss did not help.",),
    )
    return dataclasses.replace(whole, **changes)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    Image.fromarray(np.full((40, 60, 3), 90, np.uint8)).save(tmp_path / "photo.png")
    return tmp_path


class Page(HTMLParser):
    """Tags, addresses and text of a page; end tags must match."""

    VOID = frozenset({"meta", "img", "source", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def written(found: Results, out: Path) -> tuple[str, Page]:
    write_report(found, out)
    return (out / "report.md").read_text("utf-8"), Page((out / "report.html").read_text("utf-8"))


def bare(**changes: object) -> Results:
    """Only what is given, so that nothing else needs to be drawn."""
    nothing: dict[str, object] = {"tables": (), "claims": (), "examples": (), "curves": {}, "remarks": ()}
    return results(**{**nothing, **changes})


def test_both_forms_say_what_was_found(out: Path) -> None:
    text, page = written(results(), out)
    for said in (text, page.text):
        for part in (
            *("MITR, run anew", "2 rows compared anew for Table 5 with seeds 0, 1 and 2", "MITR beats the baseline."),
            *("✓ held", "another data set", "The cycle loss did not help.", "4,000", "abc123", "Meng et al. 2021"),
            *("0.210", "0.171", "0.310", "0.208", "LBM (k=0) ↓", "CIDEr ↑"),
        ):
            assert part in said
    assert text.index("✓ held") < text.index("Table 5. ")
    assert "| MITR | **0.210** ± 0.010 | ***0.171*** | 1.100 ± 0.141 |" in text
    assert "| Baseline | 0.310 ± 0.010 | *0.208* | – |" in text
    assert "MITR: CIDEr is no number in 1 of 3 seeds." in text


def test_the_page_needs_no_network_and_has_no_script(out: Path) -> None:
    _, page = written(results(), out)
    kinds = [tag for tag, _ in page.tags]
    assert "script" not in kinds
    assert "link" not in kinds
    assert kinds.count("img") == 3  # Two plots and the traces.
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "srcset", "href"):
            assert (attributes.get(name) or "data:").startswith("data:")


def test_every_picture_that_markdown_shows_is_beside_it(out: Path) -> None:
    text, _ = written(results(), out)
    shown = [line.split("](")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    assert shown == ["pictures/claims-light.png", "pictures/curves-light.png", "pictures/traces-1.png"]
    assert all((out / path).read_bytes().startswith(b"\x89PNG") for path in shown)


def test_the_same_results_give_the_same_bytes(out: Path) -> None:
    write_report(results(), out)
    first = {path: path.read_bytes() for path in sorted(out.rglob("*.*"))}
    write_report(results(), out)
    assert {path: path.read_bytes() for path in sorted(out.rglob("*.*"))} == first
    assert len(first) == 9


def evil(**changes: object) -> Report:
    """A report every text of which is markup; half characters cannot stand in JSON, so nothing is drawn or kept."""
    row = ModelRow(EVIL, ({EVIL: 1.0},), {EVIL: 2.0})
    kinds = {"figures": 0, "examples": 0, "levels": 0, "heats": 0}
    whole = Report(
        title=EVIL,
        paper=EVIL,
        settings={EVIL: EVIL},
        made_by={"git": [EVIL]},
        tables=(Table(1, EVIL, (MeasureColumn(EVIL),), (row, row), EVIL),),
        claims=(Claim(EVIL, EVIL, EVIL, EVIL, (1.0,), 0.5, 1.5, "held", EVIL, 0.01, 0.06),),
        curves={EVIL: [(0, 1.0)]},
        remarks=(EVIL, "- not a list"),
        sweeps=(Sweep(EVIL, EVIL, EVIL, {EVIL: [(0, 1.0, 0.9, 1.1)]}, ((0, 1.0),), EVIL),),
        illustrations=tuple(
            Illustration(kind, "p.png", EVIL, EVIL, marked, EVIL, (Line(EVIL, EVIL, 0.5, True),), (EVIL,), EVIL)
            for kind, marked in kinds.items()
        ),
    )
    return dataclasses.replace(whole, **changes)


def test_all_text_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    for name in ("p", *(f"pictures/{plot}-light" for plot in ("claims", "curves", "sweep-1"))):
        Image.new("RGB", (4, 4)).save(tmp_path / f"{name}.png")
    text, page = markdown(evil()), Page(page_of(evil(), tmp_path))
    assert "script" not in [tag for tag, _ in page.tags]
    assert "<script>alert(1)</script>" in page.text
    assert "<script" not in text.replace("\\<script", "")
    assert "- \\- not a list" in text
    assert len([line for line in text.splitlines() if line.startswith("# ")]) == 1


REPORTS = Path(__file__).resolve().parents[2] / "docs" / "reports"


@pytest.mark.parametrize("folder", sorted(path.parent for path in REPORTS.glob("*/numbers.json")), ids=lambda p: p.name)
def test_a_committed_report_is_what_its_numbers_give(folder: Path) -> None:
    report = load_report(folder)
    assert markdown(report) == (folder / "report.md").read_text(encoding="utf-8")
    assert Page(page_of(report, folder)).tags[0][0] == "html"


def test_a_report_can_be_written_anew_from_its_numbers_and_pictures(out: Path) -> None:
    odd = {
        "claims": (judge("c", LBM, ModelRow("a", ({LBM.name: 1.0},)), ModelRow("b", ({LBM.name: NAN},))),),
        **ODD["a broken sweep"],
    }
    write_report(hint(**odd, examples=results().examples), out)
    texts = {name: (out / name).read_bytes() for name in ("report.md", "report.html")}
    for name in texts:
        (out / name).unlink()
    render(out)
    assert {name: (out / name).read_bytes() for name in texts} == texts


@pytest.mark.parametrize(
    ("numbers", "reason"), [(None, "holds no report"), ("{", "holds no report"), ('{"title": 3}', "holds no report")]
)
def test_a_folder_without_numbers_cannot_be_rendered(tmp_path: Path, numbers: str | None, reason: str) -> None:
    if numbers is not None:
        (tmp_path / "numbers.json").write_text(numbers)
    with pytest.raises(InvalidFile, match=reason):
        render(tmp_path)


def test_a_picture_that_is_gone_is_named(out: Path) -> None:
    write_report(results(), out)
    (out / "pictures" / "traces-1.png").unlink()
    with pytest.raises(InvalidFile, match="traces-1"):
        render(out)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("BLEU-4, 0.5 (k=1)", "BLEU-4, 0.5 (k=1)"),
        ("a|b", "a\\|b"),
        ("[x](y)", "\\[x\\](y)"),
        ("# x", "\\# x"),
        ("- x", "\\- x"),
        ("1. x", "1\\. x"),
        ("36.4", "36.4"),
        ("two\nlines", "two lines"),
        ("&lt;", "\\&lt;"),
    ],
)
def test_markdown_shows_text_as_it_is(text: str, safe: str) -> None:
    assert markdown_safe(text) == safe


ODD = {
    "nothing at all": {"settings": {}, "made_by": {}, "seeds": ()},
    "no seeds": {
        "seeds": (),
        "tables": (Table(2, "t", (LBM,), (ModelRow("a"), ModelRow("b"))),),
    },
    "no rows": {"tables": (Table(2, "t", (LBM,), ()),)},
    "no columns": {"tables": (Table(2, "t", (), (BASE,)),)},
    "one seed": {
        "seeds": (0,),
        "claims": (judge("c", LBM, ModelRow("a", ({LBM.name: 1.0},)), ModelRow("b", ({LBM.name: 2.0},))),),
    },
    "a claim without seeds": {"claims": (Claim("c", "m", "a", "b", (), NAN, NAN, "undecided"),)},
    "a claim that is no number": {"claims": (Claim("c", "m", "a", "b", (NAN, 1.0), NAN, NAN, "undecided"),)},
    "a claim without spread": {"claims": (Claim("c", "m", "a", "b", (0.0, 0.0), 0.0, 0.0, "undecided"),)},
    "broken curves": {"curves": {"a": [], "b": [(0, NAN)], "c": [(0, 1.0)], "d": [(0, 1.0), (5, math.inf)]}},
    "no photo": {"examples": (Example("gone.png", spoken("a cat"), {}),)},
    "silent models": {"examples": (Example("photo.png", Narrative("7"), {"m": Narrative("7", "a cat")}),)},
    "many models": {"examples": (Example("photo.png", spoken("a"), {f"m{i}" * 30: spoken("cat") for i in range(5)}),)},
    "a broken sweep": {
        "sweeps": (
            Sweep("s", "x", "m", {}),
            Sweep("s", "x", "m", {"a": []}, ((0, NAN),)),
            Sweep("s", "x", "m", {"a": [(0, NAN, NAN, NAN)], "b": [(0, 1.0, -math.inf, math.inf)]}, ((0, 2.0),)),
            Sweep("s", "x", "m", {f"row {i}" * 20: [(2, 1.0, 1.0, 1.0), (1, i, NAN, i + 1)] for i in range(9)}),
        )
    },
    "heat maps of nothing": {
        "heats": (
            HeatExample("gone.png", "", ()),
            HeatExample("photo.png", "word " * 99, tuple(HeatPanel("W" * 99, None, note="n " * 300) for _ in range(5))),
        )
    },
    "endless caption": {"examples": (Example("photo.png", spoken("cat " * 300), {"m": spoken("W" * 300)}),)},
}


@pytest.mark.parametrize("changes", ODD.values(), ids=ODD.keys())
def test_odd_results_make_a_report_too(out: Path, changes: dict[str, object]) -> None:
    text, page = written(bare(**changes), out)
    assert text.startswith("# MITR, run anew\n")
    assert page.tags[0][0] == "html"
    assert "nan" not in page.text.lower()
    assert json.loads((out / "numbers.json").read_text())["title"] == "MITR, run anew"


def test_what_is_missing_is_said(out: Path) -> None:
    changes = {**ODD["no photo"], **ODD["one seed"]}
    text, page = written(bare(**changes), out)
    assert "no interval from 1 seed" in text
    assert "? undecided" in page.text
    text, page = written(bare(**ODD["endless caption"]), out)
    assert "… and 100 more words." in page.text
    text, page = written(bare(**ODD["silent models"]), out)
    assert "Nobody pointed: there is no trace." in page.text


def test_an_unknown_verdict_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    odd = Claim("c", "m", "a", "b", (1.0,), 0.5, 1.5, "perhaps")
    with pytest.raises(InvalidValue, match="perhaps"):
        write_report(results(claims=(odd,)), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verdict", ["held", "not held", "undecided"])
def test_a_verdict_is_a_word_and_a_symbol_beside_its_colour(out: Path, verdict: str) -> None:
    text, page = written(bare(claims=(Claim("c", "m", "a", "b", (1.0, 2.0), 0.5, 2.5, verdict),)), out)
    symbol = {"held": "✓", "not held": "✗", "undecided": "?"}[verdict]
    assert f"| {symbol} {verdict} |" in text
    assert f"{symbol} {verdict}" in page.text
    assert ("span", {"class": f"verdict {verdict.replace(' ', '-')}"}) in page.tags


@pytest.mark.parametrize(
    ("lower", "values", "best"),
    [
        (True, [0.3, 0.2, NAN], [False, True, False]),
        (False, [0.3, 0.2, NAN], [True, False, False]),
        (False, [0.3, 0.3, 0.1], [True, True, False]),
        (False, [0.3, NAN, NAN], [False, False, False]),
    ],
)
def test_the_best_of_a_column_follows_its_direction(lower: bool, values: list[float], best: list[bool]) -> None:
    rows = tuple(ModelRow(str(i), ({"m": value},), {"m": -value}) for i, value in enumerate(values))
    made = grid(Table(1, "t", (MeasureColumn("m", lower),), rows))
    assert [cells[0].best for _, cells in made.rows] == best
    assert [cells[1].paper for _, cells in made.rows] == [True] * 3


def test_without_a_number_of_the_paper_there_is_no_column_for_it() -> None:
    made = grid(Table(1, "t", (LBM, CIDER), (BASE, OURS)))
    assert [heading.has_paper for heading in made.headings] == [True, False]
    assert [len(cells) for _, cells in made.rows] == [3, 3]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1714, "0.171"),
        (-0.02, "−0.020"),
        (NAN, "–"),
        (math.inf, "–"),
        (0, "0.000"),
        (0.0001, "1.0e−04"),
        (2e6, "2.0e+06"),
    ],
)
def test_numbers_are_for_people(value: float, text: str) -> None:
    assert number(value) == text


def test_a_narrow_interval_gets_more_digits() -> None:
    assert difference(Claim("", "", "", "", (0.0012, 0.0014), 0.00121, 0.00139, "held")) == (
        "+0.00130",
        "+0.00121 to +0.00139",
    )


def test_all_panels_of_an_example_share_one_scale_and_one_view(out: Path) -> None:
    far = Trace([(-0.04, 0.5, 1.0), (1.03, 0.5, 9.0)])
    scene = TraceSheet.of(Example("photo.png", spoken("a cat"), {"m": spoken("cat", far)}), out)
    assert (scene.scale.start_s, scene.scale.end_s) == (0.0, 9.0)
    assert scene.view.bounds_xyxy == (-0.04, 0.2, 1.03, 0.5)


@pytest.mark.parametrize(("origin", "title"), [("human", "person"), ("world", "truth")])
def test_a_simulated_narrator_is_not_called_a_person(out: Path, origin: str, title: str) -> None:
    scene = TraceSheet.of(Example("photo.png", spoken("a cat", origin=origin), {"MITR": spoken("cat")}), out)
    assert [panel.title for panel in scene.panels] == [title, "MITR"]


def test_writing_a_report_needs_no_torch() -> None:
    code = "import sys, saywhere.reproduce.report; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def panels() -> tuple[HeatPanel, ...]:
    return HeatPanel("base", CORNER, [(0, 0, 0.5, 0.5)], "no ✗"), HeatPanel("human", None)


def hint(**changes: object) -> Results:
    """What a report about attention holds: claims of two sources, sections, a sweep and heat maps."""
    good, bad = (
        ModelRow(name, tuple({"CIDEr": level * i} for i in (1.1, 1.2, 1.4, 1.3, 1.5))) for name, level in GOOD_BAD
    )
    swept = Sweep(
        "By supervision", "% of training", "accuracy", {"HINT": [(0, 1, 0.5, 1.5), (6, 2, 1.75, 2.25)]}, ((6, 46.7),)
    )
    parts: dict[str, object] = {
        "seeds": (0, 1, 2, 3, 4),
        "tables": (
            Table(3, "in the world", (CIDER,), (good, bad), "The world"),
            Table(0, "faithfulness", (CIDER,), (good, bad), "The world"),
            Table(0, "questions", (CIDER,), (good, bad), "Photos"),
        ),
        "claims": (judge("It helps.", CIDER, good, bad), judge("Noise helps.", CIDER, bad, good, CRITIQUE)),
        "sweeps": (swept,),
        "heats": (HeatExample("photo.png", "a *black* cat", panels(), word=1),),
    }
    return bare(**{**parts, **changes})


GOOD_BAD = (("HINT", 2.0), ("base", 1.0))


def test_claims_of_each_source_stand_under_their_own_heading(out: Path) -> None:
    text, page = written(hint(), out)
    for said in (text, page.text):
        assert "Of 1 claim of the paper: 1 held. Of 1 claim of its critique: 1 not held." in said
        order = [said.index(part) for part in ("Claims of the paper", "It helps.", "Claims of its critique", "Noise")]
        assert order == sorted(order)
    assert "![Differences with 95 % intervals](pictures/claims-2-light.png)" in text
    assert (out / "pictures" / "claims-2-dark.png").is_file()
    only_paper = hint(claims=hint().claims[:1])
    assert "1 claim: 1 held" in opening(only_paper)
    text, page = written(only_paper, out)
    assert "Claims of" not in text + page.text


def test_both_tests_are_told_only_where_claims_were_tested(out: Path) -> None:
    text, page = written(hint(), out)
    assert "| p | p (flips) | p (together) |" in text
    assert "| +1.300 | +1.104 to +1.496 | – | \\< 0.001 | 0.062 | \\< 0.001 |" in text
    for said in (text, page.text):
        assert "With 5 seeds, flips cannot give less than 0.062." in said
    text, page = written(bare(claims=(Claim("c", "m", "a", "b", (1.0,), -INF, INF, "undecided"),)), out)
    assert "flips" not in text + page.text
    assert "| no interval from 1 seed | nothing |" in text


@pytest.mark.parametrize(
    ("p", "text"), [(None, "–"), (NAN, "–"), (0.0, "< 0.001"), (0.00099, "< 0.001"), (0.0625, "0.062"), (1.0, "1.000")]
)
def test_a_probability_is_for_people(p: float | None, text: str) -> None:
    assert probability(p) == text


def test_flips_are_tried_from_five_seeds_on() -> None:
    def judged(n: int) -> Claim:
        rows = [ModelRow(name, tuple({"CIDEr": level * (i + 1)} for i in range(n))) for name, level in GOOD_BAD]
        return judge("c", CIDER, *rows)

    assert judged(4).p_flips is None
    assert judged(5).p_flips == 2 / 32
    assert judged(5).p == pytest.approx(0.01324, abs=1e-4)
    assert judged(5).differences == (1.0, 2.0, 3.0, 4.0, 5.0)


def test_a_table_that_the_paper_has_not_has_no_number_and_sections_keep_tables_together(out: Path) -> None:
    good, *_ = hint().tables
    mixed = (*hint().tables[1:], good, Table(0, "alone", (CIDER,), ()))
    text, page = written(hint(tables=mixed), out)
    headings = [line for line in text.split("## Tables")[1].split("## Sweeps")[0].splitlines() if line.startswith("#")]
    assert headings == [
        *("### alone", "### The world", "#### faithfulness", "#### Table 3. in the world"),
        *("### Photos", "#### questions"),
    ]
    assert "for Table 3 with" in page.text
    assert "Table 0" not in text + page.text
    assert [tag for tag, _ in page.tags].count("h4") == 3


def test_a_column_shows_as_many_decimals_as_it_asks_for() -> None:
    rows = (ModelRow("a", ({"m": 47.046}, {"m": 47.146}), {"m": 46.73}), ModelRow("b", ({"m": 0.02}, {"m": 0.02})))
    made = grid(Table(1, "t", (MeasureColumn("m", digits=1),), rows))
    assert [[cell.text for cell in cells] for _, cells in made.rows] == [["47.1", "46.7"], ["0.0", "–"]]
    assert made.rows[0][1][0].spread == "0.1"


def test_a_sweep_gives_its_numbers_beside_its_plot(out: Path) -> None:
    text, page = written(hint(), out)
    assert "| % of training | 0 | 6 |" in text
    assert "| HINT | 1.0 (0.5 to 1.5) | 2.0 (1.8 to 2.2) |" in text
    assert "| the paper, on its own data | – | 46.7 |" in text
    assert "2.0" in page.text
    assert "1.8 to 2.2" in page.text
    told = [tag["alt"] for name, tag in page.tags if name == "img" and "accuracy" in (tag["alt"] or "")]
    assert told == ["accuracy over % of training, a line with a band for each row: HINT"]
    assert json.loads((out / "numbers.json").read_text())["sweeps"][0]["series"]["HINT"][1] == [6, 2, 1.75, 2.25]


def test_the_digits_of_a_sweep_follow_its_widest_interval() -> None:
    _, rows = sweep_rows(Sweep("s", "x", "m", {"a": [(0, 0.30971, 0.3054, 0.3140), (1, 0.1, 0.09, 0.11)]}))
    assert [(cell.mean, cell.interval) for cell in rows[0][1]] == [
        ("0.310", "0.305 to 0.314"),
        ("0.100", "0.090 to 0.110"),
    ]


def test_the_papers_line_has_an_axis_of_its_own() -> None:
    swept = hint().sweeps[0]
    ours, paper = draw_sweep(swept, LIGHT).axes
    assert ours.get_ylim()[1] < 3 < 40 < paper.get_ylim()[0]
    assert ours.get_xlim() == paper.get_xlim()
    assert [band.get_paths()[0].vertices[:, 1].max() for band in ours.collections] == [2.25]
    assert len(draw_sweep(dataclasses.replace(swept, paper=()), LIGHT).axes) == 1


def test_lines_of_a_sweep_differ_in_more_than_their_colour() -> None:
    swept = Sweep("s", "x", "m", {str(i): [(0, i, NAN, NAN), (1, i, NAN, NAN)] for i in range(9)})
    lines = draw_sweep(swept, LIGHT).axes[0].lines
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines}) == 9


def test_heat_maps_are_shown_with_their_words_and_told_in_words(out: Path) -> None:
    text, page = written(hint(), out)
    seen = "base: most attention at the top left, half of it on 25 % of the photo, 1 box outlined"
    assert "1\\. a **\\*black\\*** cat" in text
    assert f"![The photo; {seen}; human: no attention](pictures/heats-1.png)\n\n- base: no ✗" in text
    assert (out / "pictures" / "heats-1.png").read_bytes().startswith(b"\x89PNG")
    told = [tag["alt"] for name, tag in page.tags if name == "img"]
    assert f"The photo; {seen}; human: no attention" in told
    assert "a *black* cat" in page.text
    assert [name for name, _ in page.tags].count("mark") == 1
    assert "no ✗" in page.text


def test_a_marked_word_that_the_heading_lacks_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="marked word: is 2, but the heading has 2 words"):
        write_report(bare(heats=(HeatExample("", "a cat", (), word=2),)), tmp_path)
    assert list(tmp_path.iterdir()) == []
