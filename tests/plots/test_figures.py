"""Figures: everything can be drawn, without a warning, and shows what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from PIL import Image

from saywhere import plots
from saywhere.core import AttentionMap, InvalidFile, InvalidValue, Narrative, Trace, Word, WordBoxes
from saywhere.plots.facts import drawn_boxes
from saywhere.plots.sheet import flow, text_width_in
from saywhere.plots.text import drawable, printable, seconds, shortened
from saywhere.plots.words import _label_spots, _Rect

from .conftest import ODD_WORDS, TWO_STROKES


def pixels(figure: Figure, path: Path, dpi: float = 40) -> np.ndarray:
    plots.save_png(figure, path, dpi=dpi)
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in (figure, *figure.axes) for text in axes.texts]


def test_any_narrative_can_be_drawn_with_every_word_on_the_sheet(narrative: Narrative, photo: Path, tmp_path: Path):
    figure = plots.draw_narrative(photo, narrative)
    assert pixels(figure, tmp_path / "n.png").std() > 5
    on_sheet = texts(figure)
    for word in narrative.words:
        assert drawable(shortened(word.text, 60)) in on_sheet


def test_any_trace_and_any_words_can_be_drawn_alone(narrative: Narrative, tmp_path: Path):
    assert pixels(plots.draw_trace(None, narrative.trace), tmp_path / "t.png").std() > 5
    figure = plots.draw_word_boxes(None, narrative.words, narrative.word_boxes())
    assert pixels(figure, tmp_path / "w.png").std() > 5


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("absent.jpg", None, "absent.jpg was not found"),
        ("empty.jpg", b"", "empty.jpg is not an image"),
        ("text.png", b"hello", "text.png is not an image"),
    ],
)
def test_a_missing_photo_gives_a_canvas_that_says_why(ordinary, tmp_path: Path, name, content, reason):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    figure = plots.draw_narrative(tmp_path / name, ordinary)
    assert texts(figure).count(reason) == 2
    assert "no photo found" in texts(plots.draw_narrative(None, ordinary))


def test_a_photo_cut_in_half_is_named_as_damaged(photo: Path, tmp_path: Path):
    (tmp_path / "half.jpg").write_bytes(photo.read_bytes()[: photo.stat().st_size // 2])
    loaded = plots.load_photo(tmp_path / "half.jpg")
    assert loaded.image is None
    assert loaded.missing.startswith("half.jpg cannot be read: ")


def test_a_photo_is_turned_as_its_camera_meant_it(tmp_path: Path):
    image = Image.new("RGB", (40, 20), "white")
    image.putpixel((0, 0), (255, 0, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # To be turned clockwise by a quarter.
    image.save(tmp_path / "turned.png", exif=exif)
    loaded = plots.load_photo(tmp_path / "turned.png")
    assert loaded.size == (20, 40)
    assert loaded.image is not None
    assert loaded.image.getpixel((19, 0)) == (255, 0, 0)


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "CMYK", "I;16", "1"])
def test_photos_of_every_kind_become_rgb(mode: str, tmp_path: Path):
    suffix = "tif" if mode == "CMYK" else "png"
    grey = Image.new("L", (4, 4), 255)
    (Image.fromarray(np.full((4, 4), 65535, np.uint16)) if mode == "I;16" else grey.convert(mode)).save(
        tmp_path / f"photo.{suffix}"
    )
    loaded = plots.load_photo(tmp_path / f"photo.{suffix}")
    assert loaded.image is not None
    assert loaded.image.mode == "RGB"
    assert loaded.image.getpixel((1, 1)) == (255, 255, 255)


def test_an_array_that_is_no_photo_is_refused():
    with pytest.raises(InvalidValue, match="uint8"):
        plots.load_photo(np.zeros((4, 4)))  # type: ignore[arg-type]


def test_the_trace_is_coloured_by_time_and_not_joined_where_the_pen_was_up():
    axes = Figure().add_subplot()
    plots.add_trace(axes, TWO_STROKES, plots.TimeScale(0.5, 4.4))
    coloured = max((c for c in axes.collections if isinstance(c, LineCollection)), key=lambda c: len(c.get_segments()))
    steps = np.array(coloured.get_segments())
    assert len(steps) == len(TWO_STROKES) - 2
    assert np.linalg.norm(steps[:, 1] - steps[:, 0], axis=1).max() < 0.05
    luminance = coloured.get_colors()[:, :3] @ (0.2126, 0.7152, 0.0722)
    assert luminance[-1] > 3 * luminance[0]
    assert len({tuple(c) for c in coloured.get_colors()}) > 60


def test_words_without_a_place_are_listed_under_the_boxes():
    words = (Word("near", 0, 1), Word("nowhere", 1, 2))
    figure = plots.draw_word_boxes(None, words, WordBoxes([(0.1, 0.1, 0.5, 0.5), [np.nan] * 4]))
    assert "Without a place: nowhere" in texts(figure)
    assert "near" in texts(figure)


def test_words_and_boxes_must_be_as_many():
    with pytest.raises(InvalidValue, match="1 boxes for 0 words"):
        plots.draw_word_boxes(None, (), WordBoxes([(0, 0, 1, 1)]))


def test_more_words_than_a_sheet_holds_are_counted_not_lost_in_silence():
    words = tuple(Word("a", i, i + 1) for i in range(1600))
    figure = plots.draw_narrative(None, Narrative("7", utterances=words))
    assert "… and 100 more words." in texts(figure)


def test_a_heat_map_is_brightest_where_people_looked(photo: Path, tmp_path: Path):
    values = np.zeros((8, 8))
    values[1, 6] = 1
    image = pixels(plots.draw_heatmap(photo, AttentionMap(values)), tmp_path / "h.png", dpi=50)
    yellowness = image[:250, :, :2].mean(axis=2) - image[:250, :, 2]
    row, column = np.unravel_index(yellowness.argmax(), yellowness.shape)
    assert column > 0.7 * image.shape[1]
    assert row < 0.4 * image.shape[0]


def test_the_users_own_settings_do_not_change_a_figure(ordinary, tmp_path: Path):
    plain = pixels(plots.draw_narrative(None, ordinary), tmp_path / "a.png")
    with matplotlib.rc_context({"text.usetex": True, "font.size": 30, "lines.linewidth": 9, "axes.facecolor": "red"}):
        changed = pixels(plots.draw_narrative(None, ordinary), tmp_path / "b.png")
    assert np.array_equal(plain, changed)


def test_drawing_leaves_pyplot_alone():
    code = "import sys, saywhere.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_same_narrative_gives_the_same_png(ordinary, tmp_path: Path):
    for name in ("a.png", "b.png"):
        plots.save_png(plots.draw_narrative(None, ordinary), tmp_path / name, dpi=40)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_png_that_cannot_be_written_leaves_the_old_one_and_no_litter(tmp_path: Path):
    target = tmp_path / "old.png"
    target.write_bytes(b"old")
    with pytest.raises(ValueError):
        plots.save_png(Figure(figsize=(1e5, 1e5)), target)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["old.png"]


def test_a_place_that_cannot_be_written_to_is_left_without_litter(tmp_path: Path):
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(InvalidFile, match=r"taken\.png: cannot be written"):
        plots.save_png(Figure(figsize=(1, 1)), tmp_path / "taken.png")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.png"]


boxes = st.lists(
    st.tuples(*[st.floats(0, 1)] * 4).map(
        lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25)
@given(boxes)
def test_labels_never_cover_each_other_and_stay_on_the_photo(corners):
    axes = Figure(figsize=(3, 2)).add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 1)
    axes.set_ylim(1, 0)
    spots = [s for s in _label_spots(axes, drawn_boxes(np.array(corners), 0.01), ["word"] * len(corners)) if s]
    assert spots
    assert all(spot.within(3, 2) for spot in spots)
    assert not any(a.touches(b) for i, a in enumerate(spots) for b in spots[:i])


def test_rectangles_touch_when_they_share_room():
    assert _Rect(0, 0, 2, 2).touches(_Rect(1, 1, 2, 2))
    assert not _Rect(0, 0, 2, 2).touches(_Rect(2, 0, 2, 2))


@given(boxes, st.floats(0.001, 0.5))
def test_boxes_are_grown_until_they_can_be_seen_and_never_shrunk(corners, side):
    before = np.array(corners)
    after = drawn_boxes(before, side)
    sizes = after[:, 2:] - after[:, :2]
    assert (sizes >= np.maximum(before[:, 2:] - before[:, :2], side) - 1e-12).all()
    assert (after >= -1e-12).all()
    assert (after <= 1 + 1e-12).all()


@given(st.lists(st.floats(0.1, 5), max_size=40), st.floats(1, 8))
def test_set_words_keep_their_order_and_fit_their_lines(widths, line_in):
    spots, n_lines = flow(widths, line_in, 0.1)
    assert spots == sorted(spots)
    assert n_lines == (spots[-1][0] + 1 if spots else 0)
    for (_, x), width in zip(spots, widths, strict=True):
        assert x == 0 or x + width <= line_in


@pytest.mark.parametrize("text", ODD_WORDS)
def test_odd_text_is_made_drawable_and_keeps_what_the_font_knows(text: str):
    assert text_width_in(drawable(text), 10) > 0
    assert len(drawable(text)) == len(text)
    assert drawable("Ünïcode кошка $x_1$") == "Ünïcode кошка $x_1$"


@given(st.text(st.characters(exclude_categories=())))
def test_printable_text_can_always_be_encoded_and_stays_on_its_line(text: str):
    assert len(printable(text).encode().decode().splitlines()) <= 1


@pytest.mark.parametrize(
    ("time_s", "text"),
    [
        (0, "0.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1:00 min"),
        (125, "2:05 min"),
        (-0.01, "0.0 s"),
        (-3, "−3.0 s"),
        (1e9, "1e+09 s"),
    ],
)
def test_times_are_written_for_people(time_s: float, text: str):
    assert seconds(time_s) == text


@given(st.text(), st.integers(3, 30))
def test_shortened_text_is_no_longer_than_asked(text: str, longest: int):
    assert len(shortened(text, longest)) <= longest
    assert shortened(text, len(text)) == text


def test_a_trace_on_a_real_photo_is_drawn(shared, tmp_path: Path):
    photo = shared("data/localized_narratives/000000212166.jpg")
    trace = Trace([(0.2, 0.7, 0.7), (0.5, 0.1, 1.5), (-0.02, 1.01, 6.7)])
    assert pixels(plots.draw_trace(photo, trace), tmp_path / "r.png").std() > 20
