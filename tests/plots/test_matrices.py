"""Attention matrices: every cell in its place, one scale for all, blocks outlined and named, all labels legible."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from saywhere.core import InvalidValue
from saywhere.plots.matrices import MatrixBlock, MatrixSpan, draw_layers, draw_matrices
from saywhere.plots.matrix_grid import cell_colours
from saywhere.plots.palette import LIGHT, PALETTES, Palette

from .conftest import ODD_WORDS
from .legible import unreadable
from .test_figures import texts

WORDS = ("person", "cat", "dog", "couch", "potted plant", "book", "remote", "tv", "clock", "vase", "cup", "laptop")
BLOCKS = (
    MatrixBlock("regions → regions", "regions", "regions"),
    MatrixBlock("regions → tags", "regions", "tags"),
    MatrixBlock("tags → regions", "tags", "regions"),
)


def spans(tags: int, regions: int, every: int = 5) -> list[MatrixSpan]:
    return [
        MatrixSpan("[CLS]", ("[CLS]",)),
        MatrixSpan("tags", tuple((WORDS * 9)[:tags])),
        MatrixSpan("[SEP]", ("[SEP]",)),
        MatrixSpan("regions", tuple(str(i + 1) for i in range(regions)), every),
    ]


def attention(n: int, seed: int = 0) -> np.ndarray:
    """(n, n) rows that sum to 1."""
    weights = np.random.default_rng(seed).exponential(size=(n, n)) ** 2
    return weights / weights.sum(axis=1, keepdims=True)


def shown(figure: Figure) -> list[np.ndarray]:
    """Colours of all painted blocks, (rows, cols, 4) each; the strip of the scale is left out."""
    return [np.asarray(image.get_array()) for image in figure.axes[0].images]


def outlined(figure: Figure, palette: Palette) -> int:
    """How many blocks have a frame in ink."""
    frames = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    return sum(patch.get_linewidth() > 1 and patch.get_edgecolor() == to_rgba(palette.ink) for patch in frames)


@pytest.mark.parametrize(("tags", "regions"), [(20, 30), (4, 10), (2, 40), (60, 50), (0, 5), (5, 0)])
def test_two_matrices_can_be_read_whole(tags: int, regions: int) -> None:
    n = tags + regions + 2
    figure = draw_matrices({"before": attention(n), "after": attention(n, 1)}, spans(tags, regions), BLOCKS)
    assert unreadable(figure) == []
    assert {"before", "after", "[CLS]", "[SEP]"} <= set(texts(figure))


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES.keys())
def test_outlines_and_letters_are_in_the_ink_of_their_paper(palette: Palette) -> None:
    figure = draw_matrices({"a": attention(6)}, spans(2, 2), BLOCKS, palette)
    assert figure.get_facecolor() == to_rgba(palette.paper)
    assert {text.get_color() for text in figure.axes[0].texts} == {palette.ink}
    assert outlined(figure, palette) == 3


def test_each_matrix_has_its_three_blocks_outlined_and_named() -> None:
    figure = draw_matrices({"a": attention(52), "b": attention(52)}, spans(20, 30), BLOCKS)
    assert outlined(figure, LIGHT) == 6
    for block in BLOCKS:
        assert texts(figure).count(block.name) == 2


def test_names_too_long_for_their_block_become_letters_that_are_explained() -> None:
    figure = draw_matrices({"a": attention(34), "b": attention(34)}, spans(2, 30), BLOCKS)
    assert [texts(figure).count(letter) for letter in "ABC"] == [2, 2, 2]
    assert "A regions → regions · B regions → tags · C tags → regions" in texts(figure)


def test_a_block_of_what_is_not_there_is_left_out() -> None:
    figure = draw_matrices({"a": attention(12)}, spans(0, 10), BLOCKS)
    assert outlined(figure, LIGHT) == 1
    assert "regions → tags" not in texts(figure)


def test_all_cells_are_painted_in_their_order() -> None:
    matrix = attention(16)
    painted = shown(draw_matrices({"a": matrix}, spans(4, 10)))
    rows = [np.concatenate(painted[i * 4 : i * 4 + 4], axis=1) for i in range(4)]
    np.testing.assert_allclose(np.concatenate(rows), cell_colours(matrix, matrix.max()))


def test_all_matrices_share_one_scale_that_the_strip_tells() -> None:
    weak, strong = np.full((4, 4), 0.1), np.full((4, 4), 0.4)
    one = MatrixSpan("regions", ("1", "2", "3", "4"))
    first, second = shown(draw_matrices({"weak": weak, "strong": strong}, [one]))
    np.testing.assert_allclose(first[0, 0], cell_colours(0.1, 0.4))
    np.testing.assert_allclose(second[0, 0], cell_colours(0.4, 0.4))
    assert {"0", "0.025", "0.1", "0.23", "0.4"} <= set(texts(draw_matrices({"w": weak, "s": strong}, [one])))


def test_nothing_is_painted_where_there_is_nothing() -> None:
    matrix = np.full((2, 2), 0.5)
    matrix[0] = np.nan
    (painted,) = shown(draw_matrices({"a": matrix}, [MatrixSpan("tags", ("cat", "dog"))]))
    assert painted[..., 3].tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_matrix_without_attention_is_drawn_too(value: float) -> None:
    figure = draw_matrices({"a": np.full((2, 2), value)}, [MatrixSpan("tags", ("cat", "dog"))])
    assert unreadable(figure) == []


def test_labels_without_room_are_left_out_and_that_is_said() -> None:
    crowded = texts(draw_matrices({"a": attention(112)}, spans(60, 50)))
    assert "one label in 2 has room" in crowded
    assert not [text for text in texts(draw_matrices({"a": attention(52)}, spans(20, 30))) if "has room" in text]


def test_only_each_fifth_region_has_its_number() -> None:
    labels = texts(draw_matrices({"a": attention(52)}, spans(20, 30)))
    assert {"1", "6", "11", "16", "21", "26"} <= set(labels)
    assert not {"2", "3", "5", "10", "30"} & set(labels)


def test_odd_labels_and_titles_are_drawn_as_they_are() -> None:
    n = len(ODD_WORDS)
    figure = draw_matrices({" ".join(ODD_WORDS): attention(n)}, [MatrixSpan("$x_1$", ODD_WORDS)], ())
    assert [problem for problem in unreadable(figure) if "small" in problem or "cut" in problem] == []
    assert "$x_1$" in texts(figure)


@pytest.mark.parametrize(
    ("matrix", "parts", "blocks", "reason"),
    [
        (np.ones((2, 3)), [MatrixSpan("a", ("x", "y"))], (), "shape"),
        (np.ones((3, 3)), [MatrixSpan("a", ("x", "y"))], (), "2 labels"),
        (np.empty((0, 0)), [MatrixSpan("a", ())], (), "0 labels"),
        (np.full((2, 2), -1), [MatrixSpan("a", ("x", "y"))], (), "below 0"),
        (np.full((2, 2), np.inf), [MatrixSpan("a", ("x", "y"))], (), "without end"),
        (np.ones((2, 2)), [MatrixSpan("a", ("x",)), MatrixSpan("a", ("y",))], (), "twice"),
        (np.ones((2, 2)), [MatrixSpan("a", ("x", "y"))], (MatrixBlock("b", "a", "c"),), "not spans"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    matrix: np.ndarray, parts: list[MatrixSpan], blocks: tuple[MatrixBlock, ...], reason: str
) -> None:
    with pytest.raises(InvalidValue, match=reason):
        draw_matrices({"a": matrix}, parts, blocks)


def test_no_matrix_at_all_is_refused() -> None:
    with pytest.raises(InvalidValue, match="none"):
        draw_matrices({}, spans(2, 2))
    with pytest.raises(InvalidValue, match="no model"):
        draw_layers({}, spans(2, 2))
    with pytest.raises(InvalidValue, match="none"):
        draw_layers({"before": {}}, spans(2, 2))
    with pytest.raises(InvalidValue, match="0-th"):
        MatrixSpan("a", (), every=0)


@pytest.mark.parametrize(("layers", "columns"), [(1, 1), (4, 4), (6, 3), (8, 4)])
def test_layers_stand_in_rows_without_needless_holes(layers: int, columns: int) -> None:
    values = {m: {f"layer {i + 1}": attention(7, i) for i in range(layers)} for m in ("before", "after")}
    figure = draw_layers(values, spans(2, 3))
    assert unreadable(figure) == []
    titles = [text for text in figure.texts if text.get_text().startswith("layer ")]
    assert len(titles) == 2 * layers
    assert len({round(text.get_position()[0], 6) for text in titles}) == columns
    assert len(shown(figure)) == 2 * layers * 16


def test_all_layers_of_all_models_share_one_scale() -> None:
    one = [MatrixSpan("regions", ("1",))]
    values = {"before": {"layer 1": [[0.2]]}, "after": {"layer 1": [[0.8]]}}
    first, second = shown(draw_layers(values, one))
    np.testing.assert_allclose(first[0, 0], cell_colours(0.2, 0.8))
    np.testing.assert_allclose(second[0, 0], cell_colours(0.8, 0.8))
