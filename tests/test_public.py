"""The public face: lazy parts, reading any file, short reprs, and examples in docstrings that run."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import saywhere as sw
from saywhere import metrics

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = {
    name: getattr(sw, name) for name in sw.__all__ if inspect.isclass(getattr(sw, name)) or callable(getattr(sw, name))
}
ERRORS = {name for name, value in PUBLIC.items() if inspect.isclass(value) and issubclass(value, Exception)}
# Needs weights: tests/test_readme.py runs its example.
NO_EXAMPLE = ERRORS | {"load"}
MODULES = sorted(
    {value.__module__ for value in PUBLIC.values()}
    | {getattr(metrics, name).__module__ for name in metrics.__all__}
    | {"saywhere.formats.registry"}
)


def test_metrics_and_formats_are_imported_when_asked_for() -> None:
    code = (
        "import sys, saywhere as sw; lazy = ['saywhere.metrics', 'saywhere.formats'];"
        "print([name in sys.modules for name in lazy]); sw.metrics.lbm, sw.formats.detect;"
        "print([name in sys.modules for name in lazy])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[False, False]", "[True, True]"]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'metric'"):
        sw.metric  # type: ignore[attr-defined]  # noqa: B018
    assert {"metrics", "formats", "read"} <= set(dir(sw))


def test_any_file_is_read_by_its_content_or_by_a_named_format() -> None:
    path = ROOT / "examples/narratives.jsonl"
    values = list(sw.read(path))
    assert values
    assert all(isinstance(value, sw.Narrative) for value in values)
    assert [str(value) for value in sw.read(str(path), "localized-narratives")] == [str(value) for value in values]
    with pytest.raises(sw.UnknownName, match="Did you mean 'localized-narratives'"):
        sw.read(path, "localised-narratives")
    kinds = {type(value).__name__ for value in sw.read(ROOT / "examples/broken.jsonl")}
    assert kinds == {"Narrative", "InvalidRecord"}


def test_a_box_in_pixels_is_the_same_box_in_fractions() -> None:
    assert sw.Box.from_px(64, 48, 320, 240, size_px=(640, 480)) == sw.Box(0.1, 0.1, 0.5, 0.5)
    with pytest.raises(sw.InvalidValue, match="size_px"):
        sw.Box.from_px(1, 2, 3, 4, size_px=(0, 480))


@pytest.mark.parametrize("xyxy", [(10, 20, 100, 200), (0, 0, 640, 480), (-50.0, 0, 1, 1)])
def test_pixels_taken_for_fractions_are_refused_with_the_way_to_say_it(xyxy: tuple[float, ...]) -> None:
    with pytest.raises(sw.InvalidValue, match=r"fractions of the photo.*Box\.from_px\(.*size_px=\(width, height\)\)"):
        sw.Box(*xyxy)
    assert sw.Box(-0.5, 0, 1.5, 2).xyxy == (-0.5, 0, 1.5, 2)


LONG = sw.Trace(np.column_stack([np.linspace(0, 1, 900), np.zeros(900), np.linspace(0, 9, 900)]))


@pytest.mark.parametrize(
    "value",
    [
        LONG,
        sw.Mask(np.ones((480, 640))),
        sw.AttentionMap(np.ones((480, 640))),
        sw.Polygon(np.random.default_rng(0).random((500, 2))),
        sw.WordBoxes(np.full((80, 4), np.nan)),
        sw.Narrative("7", "so many words " * 80, (sw.Utterance("so many words " * 80, 0, 9),), LONG),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_says_what_it_is_in_one_short_line(value: object) -> None:
    assert repr(value).startswith(f"<{type(value).__name__} of ")
    assert len(repr(value)) < 150
    assert "\n" not in repr(value)


def test_every_metric_says_which_way_is_better() -> None:
    kinds = [getattr(metrics, name) for name in metrics.__all__]
    measures = {kind.__name__: kind for kind in kinds if inspect.isclass(kind) and hasattr(kind, "update")}
    assert len(measures) > 15
    lower = {name for name, kind in measures.items() if kind.higher_is_better is False}
    assert lower == {"KL", "LBM", "ScanpathDistance"}
    assert all(kind.higher_is_better is True for name, kind in measures.items() if name not in lower)


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - NO_EXAMPLE))
def test_a_public_name_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(PUBLIC[name]) or "")


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(import_module(module), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0
