from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors import safe_open

from saywhere.core import InvalidValue
from saywhere.core.errors import InvalidFile
from saywhere.models.patchioner import bank_file, memory
from saywhere.models.patchioner.bank_file import Mapping16
from saywhere.models.patchioner.memory import MemoryBank

SIZE = 24


def clustered(n: int, seed: int = 0, size: int = SIZE) -> NDArray[np.float32]:
    """Rows around a few centres, as sentences about a few things lie."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(12, size))
    return (centres[rng.integers(0, 12, n)] + 0.6 * rng.normal(size=(n, size))).astype(np.float32)


def named(n: int) -> list[str]:
    return [f"sentence {i} – é" for i in range(n)]


def reference(
    bank: MemoryBank, vectors: NDArray[np.floating], temperature: float, top: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """v' and α by the definition, in float64 and with everything held at once."""
    rows = bank.vectors.astype(np.float64)
    asked = vectors.astype(np.float64)
    cosines = asked @ rows.T / np.linalg.norm(asked, axis=1, keepdims=True)
    if top is not None:
        least = np.sort(cosines, axis=1)[:, -min(top, len(rows))]
        cosines = np.where(cosines < least[:, None], -np.inf, cosines)
    weights = np.exp((cosines - cosines.max(axis=1, keepdims=True)) / temperature)
    weights /= weights.sum(axis=1, keepdims=True)
    mixed = weights @ rows
    return mixed / np.linalg.norm(mixed, axis=1, keepdims=True), weights


@pytest.fixture(scope="module")
def bank() -> MemoryBank:
    return MemoryBank(clustered(3000), named(3000), {"text_encoder": "made-up"}, {"files": ["a.txt"]})


@pytest.mark.parametrize("temperature", [0.01, 0.02, 0.1, 10.0])
@pytest.mark.parametrize("top", [None, 1, 7, 5000])
def test_projecting_is_what_the_definition_says(bank: MemoryBank, temperature: float, top: int | None) -> None:
    vectors = clustered(9, seed=1)
    projected = bank.project(vectors, temperature, top)
    expected, weights = reference(bank, vectors, temperature, top)
    np.testing.assert_allclose(projected.vectors, expected, atol=1e-5)
    assert projected.vectors.dtype == np.float32
    for row, shares in zip(projected.nearest, weights, strict=True):
        assert [one.share for one in row] == pytest.approx(sorted(shares, reverse=True)[:5], abs=1e-4)


def test_a_lone_vector_takes_the_sieve_and_gets_the_same(monkeypatch: pytest.MonkeyPatch, bank: MemoryBank) -> None:
    assert memory._halves_multiply_well(), "this machine cannot show what the sieve does"
    monkeypatch.setattr(memory, "_SIEVED", 256)
    looked_at: list[int] = []
    sieve = memory._Sum.may_matter

    def counting(self: memory._Sum, rough: torch.Tensor) -> torch.Tensor:
        chosen = sieve(self, rough)
        looked_at.append(len(chosen))
        return chosen

    monkeypatch.setattr(memory._Sum, "may_matter", counting)
    for vector in clustered(6, seed=2):
        for top in (None, 4):
            projected = bank.project(vector[None], 0.01, top)
            expected, weights = reference(bank, vector[None], 0.01, top)
            np.testing.assert_allclose(projected.vectors, expected, atol=1e-5)
            best = np.argsort(-weights[0], kind="stable")[:4]
            assert [one.sentence for one in projected.nearest[0]][:4] == [bank.sentences[i] for i in best]
    assert 0 < sum(looked_at) < 12 * len(bank) / 2


@pytest.mark.parametrize("temperature", [1e-6, 0.003, 0.02, 0.5, 100.0])
def test_the_sieve_leaves_out_nothing_that_weighs_at_any_temperature(
    monkeypatch: pytest.MonkeyPatch, bank: MemoryBank, temperature: float
) -> None:
    vector = clustered(1, seed=6)
    dense = bank.project(vector, temperature, nearest=3)
    monkeypatch.setattr(memory, "_SIEVED", 500)
    sieved = bank.project(vector, temperature, nearest=3)
    np.testing.assert_allclose(sieved.vectors, dense.vectors, atol=5e-6)
    assert [one.sentence for one in sieved.nearest[0]] == [one.sentence for one in dense.nearest[0]]


@settings(max_examples=30)
@given(rows=st.integers(1, 40), chunk=st.integers(1, 50), seed=st.integers(0, 99), lone=st.booleans())
def test_chunks_of_any_size_give_the_same(rows: int, chunk: int, seed: int, lone: bool) -> None:
    small = MemoryBank(clustered(rows, seed), named(rows))
    vectors = clustered(1 if lone else 3, seed + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_CHUNK", chunk)
        patch.setattr(memory, "_SIEVED", chunk)
        projected = small.project(vectors, 0.05, nearest=3)
    expected, _ = reference(small, vectors, 0.05)
    np.testing.assert_allclose(projected.vectors, expected, atol=1e-5)
    assert [len(row) for row in projected.nearest] == [min(3, rows)] * len(vectors)


def test_a_vector_alone_and_in_a_batch_gives_the_same(bank: MemoryBank) -> None:
    vectors = clustered(40, seed=3)
    together = bank.project(vectors)
    for i in (0, 17, 39):
        alone = bank.project(vectors[i : i + 1])
        np.testing.assert_allclose(alone.vectors[0], together.vectors[i], atol=2e-6)
        assert [one.sentence for one in alone.nearest[0]] == [one.sentence for one in together.nearest[i]]


def test_the_nearest_sentence_of_a_row_of_the_bank_is_its_own(bank: MemoryBank) -> None:
    told = bank.project(bank.vectors[[5, 1234]], nearest=2).nearest
    assert [row[0].sentence for row in told] == ["sentence 5 – é", "sentence 1234 – é"]
    assert [row[0].cosine for row in told] == pytest.approx([1, 1], abs=1e-3)
    assert all(row[0].cosine >= row[1].cosine for row in told)
    assert bank.project(bank.vectors[:1], nearest=0).nearest == [[]]


def test_the_length_of_what_is_asked_does_not_matter(bank: MemoryBank) -> None:
    vectors = clustered(3, seed=4)
    np.testing.assert_allclose(bank.project(vectors * 1e6).vectors, bank.project(vectors).vectors, atol=2e-6)
    assert bank.project(np.empty((0, SIZE))).vectors.shape == (0, SIZE)


def test_a_bank_comes_back_from_disk_as_it_was(tmp_path: Path, bank: MemoryBank) -> None:
    bank.save(tmp_path / "bank.safetensors")
    again = MemoryBank.load(tmp_path / "bank.safetensors")
    assert (len(again), again.size, again.encoder, again.source) == (3000, SIZE, bank.encoder, bank.source)
    assert list(again.sentences) == list(bank.sentences)
    assert again.sentences[-1] == again.sentences[2999:][0] == "sentence 2999 – é"
    np.testing.assert_array_equal(again.vectors, bank.vectors)
    vectors = clustered(4, seed=5)
    np.testing.assert_array_equal(again.project(vectors).vectors, bank.project(vectors).vectors)
    assert not again.vectors.flags.writeable


def test_the_file_is_a_safetensors_file(tmp_path: Path, bank: MemoryBank) -> None:
    bank.save(tmp_path / "bank.safetensors")
    with safe_open(tmp_path / "bank.safetensors", "numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("vectors"), bank.vectors)
        assert file.get_tensor("text").tobytes().decode() == "".join(bank.sentences)
        assert file.metadata()["kind"] == "memory-bank"


def test_pages_that_were_used_are_let_go_and_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bank: MemoryBank
) -> None:
    bank.save(tmp_path / "bank.safetensors")
    monkeypatch.setattr(bank_file, "_RESIDENT_BYTES", 8192)
    again = MemoryBank.load(tmp_path / "bank.safetensors")
    vectors = clustered(4, seed=5)
    for _ in range(2):
        np.testing.assert_array_equal(again.project(vectors).vectors, bank.project(vectors).vectors)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="asks Linux")
def test_of_a_large_file_little_stays_in_memory(tmp_path: Path) -> None:
    path, size = tmp_path / "bank", 300 * 2**20
    with path.open("w+b") as file:
        file.truncate(size)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    vectors = Mapping16(mapped, 0, (size // 2048, 1024))

    def resident() -> int:
        told = Path("/proc/self/smaps").read_text().split(str(path))[1].splitlines()
        return 1024 * next(int(line.split()[1]) for line in told if line.startswith("Rss:"))

    # A number of every page.
    assert not vectors.rows[:, 0].any()
    # The system may have taken a few of them back already.
    assert resident() > size * 3 // 4
    vectors.let_go(0, len(vectors.rows))
    assert 0 < resident() <= 128 * 2**20


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:-3], "was it cut off"),
        (lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:], "SHA-256 differs"),
        (lambda data: data.replace(b"sentence 7 ", b"sentence 8 "), "SHA-256 differs"),
        (lambda data: data.replace(b"memory-bank", b"mammoth-ban"), "holds 'mammoth-ban'"),
        (lambda data: data.replace(b'"F16"', b'"F32"'), "is not the F16 of a memory bank"),
        (lambda data: b"hello", "is not a memory bank"),
        (lambda data: b"", "is not a memory bank"),
    ],
)
def test_a_damaged_bank_is_a_clear_error(tmp_path: Path, bank: MemoryBank, change: object, reason: str) -> None:
    path = tmp_path / "bank.safetensors"
    bank.save(path)
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(InvalidFile, match=reason):
        MemoryBank.load(path)


def test_a_bank_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be opened"):
        MemoryBank.load(tmp_path / "nowhere.safetensors")


@pytest.mark.parametrize(
    ("vectors", "sentences", "reason"),
    [
        (np.empty((0, 4)), [], "must not be empty"),
        (np.ones(4), ["a"], "not \\(n, d\\)"),
        (np.ones((2, 4)), ["a"], "2 vectors, but 1 sentences"),
        (np.ones((2, 4)), ["a", " "], "sentence 1 is ' '"),
        ([[1.0, 0.0], [0.0, 0.0]], ["a", "b"], "row 1 has no length"),
        ([[1.0, np.nan]], ["a"], "row 0 holds NaN"),
    ],
)
def test_a_bank_that_cannot_be_is_a_clear_error(vectors: object, sentences: list[str], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        MemoryBank(vectors, sentences)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("vectors", "options", "reason"),
    [
        (np.ones((1, SIZE + 1)), {}, f"not \\(m, {SIZE}\\)"),
        (np.ones(SIZE), {}, f"not \\(m, {SIZE}\\)"),
        (np.full((1, SIZE), np.nan), {}, "NaN or infinity"),
        (np.zeros((1, SIZE)), {}, "row 0 has no length"),
        (np.ones((1, SIZE)), {"temperature": 0.0}, "temperature"),
        (np.ones((1, SIZE)), {"temperature": float("nan")}, "temperature"),
        (np.ones((1, SIZE)), {"top": 0}, "top"),
        (np.ones((1, SIZE)), {"nearest": -1}, "nearest"),
    ],
)
def test_asking_what_cannot_be_is_a_clear_error(
    bank: MemoryBank, vectors: np.ndarray, options: dict[str, float], reason: str
) -> None:
    with pytest.raises(InvalidValue, match=reason):
        bank.project(vectors, **options)  # type: ignore[arg-type]


def test_sentences_that_cancel_out_are_a_clear_error() -> None:
    opposite = MemoryBank([[1.0, 0.0], [-1.0, 0.0]], ["yes", "no"])
    with pytest.raises(InvalidValue, match="cancel each other out"):
        opposite.project([[0.0, 1.0]])


def test_a_small_bank_in_bytes_takes_half_the_room_and_says_nearly_the_same(tmp_path: Path, bank: MemoryBank) -> None:
    for name, int8 in (("halves", False), ("bytes", True)):
        bank.save(tmp_path / name, int8=int8)
    # What is not vectors is the same in both but for a step a row.
    rows = len(bank) * bank.size
    assert (tmp_path / "halves").stat().st_size - (tmp_path / "bytes").stat().st_size == pytest.approx(
        rows - 4 * len(bank), abs=200
    )
    halves, packed = (MemoryBank.load(tmp_path / name) for name in ("halves", "bytes"))
    assert list(packed.sentences) == list(halves.sentences)
    assert (packed.encoder, packed.source) == (halves.encoder, halves.source)
    assert (np.sum(packed.vectors.astype(np.float64) * halves.vectors, axis=1) > 0.999).all()
    asked = clustered(5, seed=3)
    for ours, theirs in zip(packed.project(asked).nearest, halves.project(asked).nearest, strict=True):
        assert ours[0].cosine == pytest.approx(theirs[0].cosine, abs=0.02)
    packed.save(tmp_path / "again", int8=True)
    np.testing.assert_allclose(MemoryBank.load(tmp_path / "again").vectors, packed.vectors, atol=2e-3)


def test_a_bank_in_bytes_that_was_changed_or_cut_off_is_refused(tmp_path: Path, bank: MemoryBank) -> None:
    bank.save(tmp_path / "bank", int8=True)
    content = (tmp_path / "bank").read_bytes()
    (tmp_path / "cut").write_bytes(content[:-5])
    with pytest.raises(InvalidFile, match="cut off"):
        MemoryBank.load(tmp_path / "cut")
    at = content.index(b"}}") + 4000
    (tmp_path / "changed").write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(InvalidFile, match="SHA-256 differs"):
        MemoryBank.load(tmp_path / "changed")
    (tmp_path / "wrong").write_bytes(content.replace(b'"F32"', b'"F16"'))
    with pytest.raises(InvalidFile, match="'steps' is not the F32"):
        MemoryBank.load(tmp_path / "wrong")


def test_a_bank_keeps_its_sentences_as_queries_too(tmp_path: Path, bank: MemoryBank) -> None:
    assert bank.queries is None
    asked = clustered(len(bank), seed=7)
    for name, int8 in (("halves", False), ("bytes", True)):
        bank.with_queries(asked).save(tmp_path / name, int8=int8)
        again = MemoryBank.load(tmp_path / name)
        assert again.queries is not None
        np.testing.assert_allclose(again.vectors, bank.vectors, atol=0 if not int8 else 5e-3)
        [near] = again.queries.project(asked[5:6]).nearest
        assert near[0].sentence == bank.sentences[5]
        assert near[0].cosine == pytest.approx(1, abs=1e-3)
    with pytest.raises(InvalidValue, match="has 5 vectors, but 3,000 sentences"):
        bank.with_queries(asked[:5])
    with pytest.raises(InvalidValue, match="are 4 numbers each, not"):
        bank.with_queries(np.ones((len(bank), 4)))
    content = (tmp_path / "halves").read_bytes()
    (tmp_path / "wrong").write_bytes(
        content.replace(b'"query_steps": {"dtype": "F32"', b'"query_steps": {"dtype": "F64"')
    )
    with pytest.raises(InvalidFile, match="is not"):
        MemoryBank.load(tmp_path / "wrong")
