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

from saywhere.core import InvalidValue, Narrative, Trace, Utterance
from saywhere.reproduce._cells import difference, grid, number
from saywhere.reproduce._examples import Scene
from saywhere.reproduce._markdown import _safe as markdown_safe
from saywhere.reproduce.report import write_report
from saywhere.reproduce.results import Claim, Column, Example, Results, Row, Table, judge

NAN = float("nan")
LBM, CIDER = Column("LBM (k=0)", lower_is_better=True), Column("CIDEr")
BASE = Row("Baseline", ({"LBM (k=0)": 0.30}, {"LBM (k=0)": 0.32}, {"LBM (k=0)": 0.31}), {"LBM (k=0)": 0.208})
OURS = Row(
    "MITR",
    ({"LBM (k=0)": 0.20, "CIDEr": 1.0}, {"LBM (k=0)": 0.21, "CIDEr": NAN}, {"LBM (k=0)": 0.22, "CIDEr": 1.2}),
    {"LBM (k=0)": 0.171},
)
EVIL = "<script>alert(1)</script>|*a_b*\n# x\x07\ud800"
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
    assert kinds.count("img") == 4  # Two plots, two traces.
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


def test_all_text_is_escaped(out: Path) -> None:
    row = Row(EVIL, ({EVIL: 1.0},), {EVIL: 2.0})
    evil = results(
        title=EVIL,
        paper=EVIL,
        settings={EVIL: EVIL},
        made_by={"git": [EVIL]},
        tables=(Table(1, EVIL, (Column(EVIL),), (row, row)),),
        claims=(Claim(EVIL, EVIL, EVIL, EVIL, (1.0,), 0.5, 1.5, "held"),),
        examples=(Example("photo.png", spoken(EVIL), {EVIL: spoken(EVIL)}),),
        curves={EVIL: [(0, 1.0)]},
        remarks=(EVIL, "- not a list"),
    )
    text, page = _written_without_numbers(evil, out)
    assert "script" not in [tag for tag, _ in page.tags]
    assert "<script>alert(1)</script>" in page.text
    assert "<script" not in text.replace("\\<script", "")
    assert "- \\- not a list" in text
    assert len([line for line in text.splitlines() if line.startswith("# ")]) == 1


def _written_without_numbers(found: Results, out: Path) -> tuple[str, Page]:
    """Half characters cannot stand in JSON at all; the rest of the report takes them."""
    from saywhere.reproduce._markdown import markdown
    from saywhere.reproduce._page import page

    scenes = [Scene.of(example, out) for example in found.examples]
    pictures = {"claims": "c", "curves": "d", "example 1": "e"}
    plots = {name: {"light": b"x", "dark": b"y"} for name in ("claims", "curves")}
    return markdown(found, scenes, pictures), Page(page(found, scenes, plots))


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
        "tables": (Table(2, "t", (LBM,), (Row("a"), Row("b"))),),
    },
    "no rows": {"tables": (Table(2, "t", (LBM,), ()),)},
    "no columns": {"tables": (Table(2, "t", (), (BASE,)),)},
    "one seed": {
        "seeds": (0,),
        "claims": (judge("c", LBM, Row("a", ({LBM.name: 1.0},)), Row("b", ({LBM.name: 2.0},))),),
    },
    "a claim without seeds": {"claims": (Claim("c", "m", "a", "b", (), NAN, NAN, "undecided"),)},
    "a claim that is no number": {"claims": (Claim("c", "m", "a", "b", (NAN, 1.0), NAN, NAN, "undecided"),)},
    "a claim without spread": {"claims": (Claim("c", "m", "a", "b", (0.0, 0.0), 0.0, 0.0, "undecided"),)},
    "broken curves": {"curves": {"a": [], "b": [(0, NAN)], "c": [(0, 1.0)], "d": [(0, 1.0), (5, math.inf)]}},
    "no photo": {"examples": (Example("gone.png", spoken("a cat"), {}),)},
    "silent models": {"examples": (Example("photo.png", Narrative("7"), {"m": Narrative("7", "a cat")}),)},
    "many models": {"examples": (Example("photo.png", spoken("a"), {f"m{i}" * 30: spoken("cat") for i in range(5)}),)},
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
    rows = tuple(Row(str(i), ({"m": value},), {"m": -value}) for i, value in enumerate(values))
    made = grid(Table(1, "t", (Column("m", lower),), rows))
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
    scene = Scene.of(Example("photo.png", spoken("a cat"), {"m": spoken("cat", far)}), out)
    assert (scene.scale.start_s, scene.scale.end_s) == (0.0, 9.0)
    assert scene.view.bounds_xyxy == (-0.04, 0.2, 1.03, 0.5)


@pytest.mark.parametrize(("origin", "title"), [("human", "person"), ("world", "truth")])
def test_a_simulated_narrator_is_not_called_a_person(out: Path, origin: str, title: str) -> None:
    scene = Scene.of(Example("photo.png", spoken("a cat", origin=origin), {"MITR": spoken("cat")}), out)
    assert [panel.title for panel in scene.panels] == [title, "MITR"]


def test_writing_a_report_needs_no_torch() -> None:
    code = "import sys, saywhere.reproduce.report; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
