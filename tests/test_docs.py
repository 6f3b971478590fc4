"""The pages of `make docs`: each is there, and what the reference names exists."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
NAMED = sorted(
    {name for page in DOCS.glob("reference/*.md") for name in re.findall(r"^::: (\S+)$", page.read_text(), re.M)}
)
GENERATED = {"reference/cli.md"}


def named(path: str) -> Any:
    """What a dotted name means: a module, or something in one."""
    try:
        return import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(named(module), name)


@pytest.mark.parametrize("path", NAMED)
def test_what_the_reference_names_exists_and_has_a_docstring(path: str) -> None:
    assert named(path).__doc__


def test_every_guide_and_reference_page_is_in_the_menu_and_every_entry_is_a_page() -> None:
    menu = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    pages = {str(page.relative_to(DOCS)) for folder in ("guides", "reference") for page in (DOCS / folder).glob("*.md")}
    assert pages | GENERATED <= menu
    assert [page for page in menu - GENERATED if not (DOCS / page).is_file()] == []


def test_every_module_that_a_guide_names_is_there() -> None:
    made_up = {"tsv_captions.py", "lengths.py", "colours.py", "widths.py"}
    for guide in DOCS.glob("guides/*.md"):
        for name in re.findall(r"`((?:src/saywhere/)[\w/]+\.py)`", guide.read_text()):
            assert Path(name).name in made_up or (ROOT / name).is_file(), f"{guide.name}: {name}"
