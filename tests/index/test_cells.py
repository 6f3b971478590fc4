"""Vectors that are made up, in the tables of a library: ordered into cells and found among many."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lancedb")

from saywhere.index import Library, Query, search
from saywhere.index.library import About, begin
from saywhere.index.places import FolderPlace
from saywhere.index.tables import PHOTOS, REGIONS, LibraryTables
from saywhere.index.update import order_vectors

_, DOG, CUP = np.eye(3, dtype=np.float32)


def test_one_bit_a_number_finds_what_comparing_with_all_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_INDEXED_FROM", 64), ("_PER_CELL", 128)):
        monkeypatch.setattr(sys.modules["saywhere.index.update"], name, value)
    begin(FolderPlace(tmp_path), About("made up", {}, 16))
    tables = LibraryTables(FolderPlace(tmp_path), 16, create=True)
    vectors = np.random.default_rng(0).standard_normal((600, 16))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    state = {"size": 0, "mtime_ns": 0, "digest": "", "words": []}
    halves = vectors.astype(np.float16)
    region = {"name": "", "score": 1, "box": [0, 0, 1, 1]}
    tables.add(REGIONS, ({"photo": i, **region, "vector": v} for i, v in enumerate(halves)))
    tables.add(PHOTOS, ({"id": i, "name": f"{i}.jpg", **state, "vector": v} for i, v in enumerate(halves)))
    order_vectors(tables)
    library = Library(tmp_path, tmp_path)
    for vector in vectors[:5].astype(np.float32):
        exact = np.argsort(-(vectors @ vector))[:5]
        assert [hit.photo for hit in search(library, Query(vector, regions=True), 5)] == [f"{i}.jpg" for i in exact]


def test_cells_are_made_anew_when_there_are_many_more_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_INDEXED_FROM", 300), ("_PER_CELL", 100)):
        monkeypatch.setattr(sys.modules["saywhere.index.update"], name, value)
    tables = LibraryTables(FolderPlace(tmp_path), 16, create=True)
    vectors = np.random.default_rng(0).standard_normal((1_300, 16)).astype(np.float16)
    region = {"name": "", "score": 1, "box": [0, 0, 1, 1]}
    made = []
    for first, stop in ((0, 300), (300, 1_100), (1_100, 1_300)):
        tables.add(REGIONS, ({"photo": i, **region, "vector": vectors[i]} for i in range(first, stop)))
        order_vectors(tables)
        made.append([index.name for index in tables[REGIONS].list_indices()])
    assert made == [["cells_300"], ["cells_300"], ["cells_1300"]]


def test_regions_of_photos_with_a_word_are_found_though_others_are_nearer(tmp_path: Path) -> None:
    begin(FolderPlace(tmp_path), About("made up", {}, 3))
    tables = LibraryTables(FolderPlace(tmp_path), 3, create=True)
    state, region = {"size": 0, "mtime_ns": 0, "digest": ""}, {"name": "", "score": 1, "box": [0, 0, 1, 1]}
    words, vectors = [["cup"]] * 40 + [["dog"]] * 2, [CUP] * 40 + [(CUP + DOG) / np.sqrt(2)] * 2
    halves = [vector.astype(np.float16) for vector in vectors]
    tables.add(REGIONS, ({"photo": i, **region, "vector": vector} for i, vector in enumerate(halves)))
    photos = ({"id": i, "name": f"{i}.jpg", **state, "words": words[i], "vector": v} for i, v in enumerate(halves))
    tables.add(PHOTOS, photos)
    found = search(Library(tmp_path, tmp_path), Query(CUP, regions=True, word="dog"), 2)
    assert {hit.photo for hit in found} == {"40.jpg", "41.jpg"}
