"""Figures and captions at several levels in a report: in both forms, alone, accessible, and unbroken by odd input."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure as Sheet
from PIL import Image

from saywhere.core import InvalidValue
from saywhere.plots.palette import DARK, LIGHT, Palette
from saywhere.plots.sheet import new_sheet, write
from saywhere.reproduce._cells import grid
from saywhere.reproduce._sheets import draw_levels, drawn, shown_width_px
from saywhere.reproduce.report import write_report
from saywhere.reproduce.results import LevelExample, Line, NamedBox, Results
from saywhere.reproduce.tables import MeasureColumn, ModelRow, Table

from .test_report import Page, bare, out, written

__all__ = ["out"]

LINES = (
    Line("object, before", "a man on a surfboard", 0.83),
    Line("scene, after", "the picture is taken in the sea", 0.714, True),
    Line("scene, after, without surfboard", "on a beach", 0.5, False),
)
SEA = LevelExample("photo.png", "true scene: sea", LINES, (NamedBox("surfboard", (0.2, 0.5, 0.6, 0.8)),))


def plot(palette: Palette, width_in: float = 7.6) -> Sheet:
    figure = new_sheet(width_in, 1)
    figure.set_facecolor(palette.paper)
    write(figure, "attention", 0.2, 0.5, size=9, colour=palette.ink)
    return figure


PLOT = drawn("Spread and mass", plot, "Two clouds: the second has a lower spread.", "Each point is an image.")


def images(page: Page) -> list[dict[str, str | None]]:
    return [attributes for tag, attributes in page.tags if tag == "img"]


def decoded(address: str | None) -> Image.Image:
    assert address is not None
    return Image.open(io.BytesIO(base64.b64decode(address.split("base64,")[1])))


def test_a_figure_is_drawn_on_both_papers() -> None:
    papers = [Image.open(io.BytesIO(png)).convert("RGB").getpixel((2, 2)) for png in (PLOT.png, PLOT.dark_png or b"")]
    assert papers == [(255, 255, 255), (0x1E, 0x1D, 0x20)]
    assert papers == [tuple(bytes.fromhex(palette.paper[1:])) for palette in (LIGHT, DARK)]


def test_both_forms_show_the_figure_with_its_title_caption_and_alt_text(out: Path) -> None:
    text, page = written(bare(figures=(PLOT,)), out)
    assert "## Figures\n\n### Spread and mass\n\n![Two clouds: the second" in text
    assert "(pictures/figure-1-light.png)\n\nEach point is an image." in text
    assert (out / "pictures" / "figure-1-light.png").read_bytes() == PLOT.png
    assert (out / "pictures" / "figure-1-dark.png").read_bytes() == PLOT.dark_png
    for said in ("Figures", "Spread and mass", "Each point is an image."):
        assert said in page.text
    (image,) = images(page)
    assert image["alt"] == "Two clouds: the second has a lower spread."
    assert decoded(image["src"]).size == (1140, 150)
    (source,) = [attributes for tag, attributes in page.tags if tag == "source"]
    assert source["media"] == "(prefers-color-scheme: dark)"
    assert decoded(source["srcset"]).convert("RGB").getpixel((2, 2)) == (0x1E, 0x1D, 0x20)


def test_a_figure_is_shown_so_large_that_its_letters_keep_their_size(out: Path) -> None:
    wide = drawn("wide", lambda palette: plot(palette, 11.6), "wide")
    _, page = written(bare(figures=(PLOT, wide)), out)
    assert [image["width"] for image in images(page)] == [str(round(7.6 * 96)), str(round(11.6 * 96))]


def test_a_figure_without_a_dark_form_keeps_its_light_paper(out: Path) -> None:
    _, page = written(bare(figures=(dataclasses.replace(PLOT, dark_png=None),)), out)
    assert "source" not in [tag for tag, _ in page.tags]
    assert [a["class"] for tag, a in page.tags if "drawn" in (a.get("class") or "")] == ["card drawn bright scroll"]
    assert not (out / "pictures" / "figure-1-dark.png").exists()


def test_figures_of_one_section_stand_together(out: Path) -> None:
    both = (("matrices", "Attention"), ("probe", "Representations"), ("densities", "Attention"))
    parts = tuple(dataclasses.replace(PLOT, title=title, section=section) for title, section in both)
    text, page = written(bare(figures=parts), out)
    headings = [line for line in text.split("## Figures")[1].splitlines() if line.startswith("###")]
    assert headings == ["### Attention", "#### matrices", "#### densities", "### Representations", "#### probe"]
    assert text.index("figure-1-light") < text.index("figure-3-light") < text.index("figure-2-light")
    order = [page.text.index(heading.lstrip("# ")) for heading in headings]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"png": b"no picture"}, "no PNG"),
        ({"dark_png": b""}, "no PNG"),
        ({"alt": " "}, "no alt text"),
    ],
)
def test_a_figure_nobody_could_see_is_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    with pytest.raises(InvalidValue, match=reason):
        write_report(bare(figures=(dataclasses.replace(PLOT, **changes),)), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_picture_without_dots_per_inch_is_shown_pixel_by_pixel() -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (300, 10)).save(buffer, "PNG")
    assert shown_width_px(buffer.getvalue()) == 300


def test_both_forms_give_every_caption_with_its_confidence_and_whether_it_is_right(out: Path) -> None:
    text, page = written(bare(levels=(SEA,)), out)
    assert "### 1\\. true scene: sea" in text
    assert "| Level | Caption | Confidence | Right |\n| --- | --- | ---: | --- |" in text
    assert "| object, before | a man on a surfboard | 0.83 | – |" in text
    assert "| scene, after | the picture is taken in the sea | 0.71 | ✓ |" in text
    assert "| scene, after, without surfboard | on a beach | 0.50 | ✗ |" in text
    assert "taken away, outlined: surfboard" in text
    for line in LINES:
        assert line.label in page.text
        assert line.text in page.text
    for said in ("true scene: sea", "confidence 0.71", "✓right", "✗wrong", "taken away, outlined: surfboard"):
        assert said in page.text
    assert [image["alt"] for image in images(page)] == ["Photo: true scene: sea; taken away, outlined: surfboard"]


def test_columns_that_nobody_knows_anything_of_are_left_out(out: Path) -> None:
    plain = LevelExample("photo.png", "", (Line("scene", "in a house"), Line("action", "")))
    text, page = written(bare(levels=(plain,)), out)
    assert "| Level | Caption |\n| --- | --- |\n| scene | in a house |\n| action | – |" in text
    assert "confidence " not in page.text
    assert [image["alt"] for image in images(page)] == ["The photo"]


def test_the_photo_is_a_file_beside_markdown_and_inside_the_page(out: Path) -> None:
    text, page = written(bare(levels=(SEA, dataclasses.replace(SEA, section="Photos"))), out)
    shown = [line.split("](")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    assert shown == ["pictures/levels-1.webp", "pictures/levels-2.webp"]
    for path, image in zip(shown, images(page), strict=True):
        assert (image["src"] or "").startswith("data:image/webp")
        assert decoded(image["src"]).tobytes() == Image.open(out / path).tobytes()


def test_what_was_taken_away_is_outlined_and_named_once(out: Path) -> None:
    boxes = (
        NamedBox("cup", (0.1, 0.1, 0.4, 0.4)),
        NamedBox("cup", (0.5, 0.5, 0.9, 0.9)),
        NamedBox("fork", (0, 0, 2, 2)),
    )
    (axes,) = draw_levels(dataclasses.replace(SEA, removed=boxes), out).axes
    assert sorted(text.get_text() for text in axes.texts) == ["cup", "fork"]
    assert len(axes.patches) == 3 * 3 + 2
    assert len(draw_levels(dataclasses.replace(SEA, removed=()), out).axes[0].patches) == 0
    text, _ = written(bare(levels=(dataclasses.replace(SEA, removed=boxes),)), out)
    assert "\ntaken away, outlined: cup, fork\n" in text


def test_names_on_the_photo_do_not_lie_over_each_other(out: Path) -> None:
    boxes = tuple(NamedBox(f"thing {i}", (0.1, 0.1, 0.5, 0.5)) for i in range(4))
    (axes,) = draw_levels(dataclasses.replace(SEA, removed=boxes), out).axes
    heights = sorted(text.get_position()[1] for text in axes.texts)
    assert len(heights) == 4
    assert min(np.diff(heights)) > 0.05


ODD = {
    "no photo": dataclasses.replace(SEA, photo="gone.png"),
    "no lines": dataclasses.replace(SEA, lines=()),
    "a confidence that is no number": dataclasses.replace(SEA, lines=(Line("a", "b", float("nan"), None),)),
    "a box outside": dataclasses.replace(SEA, removed=(NamedBox("W" * 99, (3, 3, 4, 4)), NamedBox("", (0, 0, 0, 0)))),
    "endless": dataclasses.replace(SEA, heading="W" * 300, lines=(Line("l" * 300, "cat " * 300),)),
}


@pytest.mark.parametrize("example", ODD.values(), ids=ODD.keys())
def test_odd_examples_make_a_report_too(out: Path, example: LevelExample) -> None:
    _, page = written(bare(levels=(example,)), out)
    assert len(images(page)) == 1
    assert "nan" not in page.text.lower()
    assert json.loads((out / "numbers.json").read_text())["illustrations"][0]["title"] == example.heading


def test_numbers_hold_what_is_said_of_pictures_and_not_the_pictures(out: Path) -> None:
    write_report(bare(levels=(SEA,), figures=(PLOT,)), out)
    figure, level = json.loads((out / "numbers.json").read_text())["illustrations"]
    assert level["lines"][1] == {
        "label": "scene, after",
        "text": "the picture is taken in the sea",
        "confidence": 0.714,
        "good": True,
    }
    assert (figure["picture"], figure["dark"]) == ("pictures/figure-1-light.png", "pictures/figure-1-dark.png")
    assert set(figure) == set(level)


def test_the_same_figures_and_levels_give_the_same_bytes(out: Path) -> None:
    found = bare(levels=(SEA,), figures=(PLOT, drawn("Spread and mass", plot, "again")))
    write_report(found, out)
    first = {path: path.read_bytes() for path in sorted(out.rglob("*.*"))}
    write_report(found, out)
    assert {path: path.read_bytes() for path in sorted(out.rglob("*.*"))} == first
    assert first[out / "pictures" / "figure-1-light.png"] == first[out / "pictures" / "figure-2-light.png"]


def scenes_table(**changes: object) -> Table:
    columns = tuple(
        MeasureColumn(f"overlap at {k}, {when}", digits=2) for k in (3, 5, 7) for when in ("before", "after", "both")
    )
    scores = tuple({column.name: 0.1 * i for i, column in enumerate(columns)} for _ in range(3))
    printed = {column.name: 0.5 for column in columns}
    rows = tuple(ModelRow(f"scene {i}", scores, printed if i % 2 else {}) for i in range(13))
    return dataclasses.replace(Table(2, "objects of scenes", columns, rows), **changes)


def test_rows_that_are_scenes_are_called_so_and_do_not_compete(out: Path) -> None:
    text, page = written(bare(tables=(scenes_table(rows_are="Scene", compete=False),)), out)
    assert "| Scene | overlap at 3, before ↑ |" in text
    assert "**" not in text.split("## Tables")[1].split("## What")[0]
    assert "Scene" in page.text
    assert "best" not in [a.get("class") for _, a in page.tags]
    assert any(cell.best for _, cells in grid(scenes_table()).rows for cell in cells)


@pytest.fixture(scope="module")
def browse() -> Iterator[Callable[[Path, int, str], list[object]]]:
    """Open a page at a width and in a colour scheme: how wide it is, and what it says to the console."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    from ..studio.browser.running import browser_path

    path = browser_path()
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])

        def look(address: Path, width: int, scheme: str) -> list[object]:
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            said: list[object] = []
            page.on("console", lambda message: said.append(message.text))
            page.goto(address.as_uri())
            found = page.evaluate(
                """() => [document.documentElement.scrollWidth,
                          [...document.images].every(image => image.complete && image.naturalWidth > 0),
                          [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length,
                          [...document.querySelectorAll('.drawn img')].map(image => Math.round(image.width))]"""
            )
            page.close()
            return [*found, said]

        yield look
        browser.close()


@pytest.mark.parametrize(("width", "scrolled"), [(1280, 1), (360, 3)])
def test_wide_tables_and_figures_scroll_inside_and_the_page_does_not(
    out: Path, browse: Callable[[Path, int, str], list[object]], width: int, scrolled: int
) -> None:
    wide = drawn("wide", lambda palette: plot(palette, 11.6), "wide")
    found: Results = bare(tables=(scenes_table(),), figures=(PLOT, wide), levels=(SEA,))
    write_report(found, out)
    for scheme in ("light", "dark"):
        assert browse(out / "report.html", width, scheme) == [width, True, scrolled, [730, 1114], []]
