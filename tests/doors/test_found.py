"""Files that fuzzing found (`python -m tests.fuzz`): each once ended in something else than a clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from saywhere.core.errors import SaywhereError
from saywhere.learn.recipe import read_recipe
from saywhere.models import h5_file
from saywhere.models.feature_files import arrays_in, open_records

FOUND = Path(__file__).with_name("found")


def test_hdf5_whose_texts_go_round_for_ever_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(h5_file, "_PATIENCE_S", 5.0)
    records = open_records(FOUND / "endless_text.h5")
    with pytest.raises(SaywhereError, match="texts"):
        list(records.ids())
    records.close()


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.np[yz]")), ids=lambda path: path.name)
def test_headers_that_are_no_python_are_refused(path: Path) -> None:
    with pytest.raises(SaywhereError):
        arrays_in(path.read_bytes(), path)


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.toml")), ids=lambda path: path.name)
def test_recipes_that_are_none_are_refused(path: Path) -> None:
    with pytest.raises(SaywhereError):
        read_recipe(path)
