"""Approximate search in a memory bank: what it finds is exact, what it misses is little, and it knows its own bank."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lancedb")

from typer.testing import CliRunner

from saywhere.cli.app import app
from saywhere.core.errors import InvalidFile
from saywhere.models.patchioner import bank_index
from saywhere.models.patchioner.bank_file import open_bank
from saywhere.models.patchioner.bank_index import build_index, index_folder
from saywhere.models.patchioner.memory import MemoryBank
from tests.models.test_patchioner_memory import clustered, named


def _bank(folder: Path, rows: int, seed: int = 0) -> Path:
    path = folder / "bank.safetensors"
    MemoryBank(clustered(rows, seed), named(rows)).save(path)
    return path


def _indexed(path: Path) -> MemoryBank:
    file = open_bank(path, verify=False)
    build_index(path, file.vectors, file.sha256)
    return MemoryBank.load(path, approximate=True)


@pytest.mark.parametrize("rows", [300, 6_000])
def test_what_is_found_is_exact_and_little_is_missed(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bank_index, "_PER_CELL", 250)  # 24 cells for the larger bank, none for the smaller
    path = _bank(tmp_path, rows)
    asked = clustered(20, seed=1)
    exact, near = MemoryBank.load(path).project(asked), _indexed(path).project(asked)
    np.testing.assert_allclose((exact.vectors * near.vectors).sum(axis=1), 1, atol=0.01)
    told = [[{one.sentence for one in row} for row in found.nearest] for found in (exact, near)]
    same = [len(a & b) for a, b in zip(*told, strict=True)]
    assert np.mean(same) >= 4.5  # of five
    for wanted, found in zip(exact.nearest, near.nearest, strict=True):
        cosines = {one.sentence: one.cosine for one in wanted}
        assert [one.cosine for one in found] == sorted((one.cosine for one in found), reverse=True)
        assert all(abs(cosines.get(one.sentence, one.cosine) - one.cosine) < 1e-6 for one in found)


def test_top_and_no_vectors_at_all_work_as_without_an_index(tmp_path: Path) -> None:
    bank = _indexed(_bank(tmp_path, 300))
    asked = clustered(3, seed=1)
    np.testing.assert_allclose(
        bank.project(asked, top=2).vectors,
        MemoryBank.load(tmp_path / "bank.safetensors").project(asked, top=2).vectors,
        atol=1e-6,
    )
    assert bank.project(asked[:0]).nearest == []


def test_an_index_belongs_to_one_bank(tmp_path: Path) -> None:
    path = _bank(tmp_path, 300)
    _indexed(path)
    _bank(tmp_path, 300, seed=5)
    with pytest.raises(InvalidFile, match="index of another memory bank"):
        MemoryBank.load(path, approximate=True)
    (index_folder(path) / "about.json").write_bytes(b"{")
    with pytest.raises(InvalidFile, match="is not the index"):
        MemoryBank.load(path, approximate=True)


def test_a_bank_without_an_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="saywhere build memory-index"):
        MemoryBank.load(_bank(tmp_path, 30), approximate=True)


def test_an_index_that_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    path = _bank(tmp_path, 300)
    file = open_bank(path, verify=False)

    def stop(*_: object) -> None:
        raise RuntimeError("stopped")

    with pytest.raises((RuntimeError, OSError, ValueError), match="stopped"):
        build_index(path, file.vectors, file.sha256, stop)
    assert [one.name for one in tmp_path.iterdir()] == ["bank.safetensors"]


def test_the_command_makes_it(tmp_path: Path) -> None:
    path = _bank(tmp_path, 300)
    ran = CliRunner().invoke(app, ["build", "memory-index", str(path)])
    assert ran.exit_code == 0, ran.output
    assert "300 sentences" in ran.stdout
    assert len(MemoryBank.load(path, approximate=True)) == 300
