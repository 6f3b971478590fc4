"""A writer that learns from captions alone is tuned to an eye: across the gap that was measured, and to the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saywhere.build import text_writer
from saywhere.build.text_writer import TextWriterScale, build_text_writer, measure_gap, write_captions
from saywhere.core.errors import InvalidFile
from saywhere.models.eye.features import EyeFeatures
from saywhere.models.patchioner.data import Texts
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.memory import MemoryBank
from tests.models import eye_small

QUIET: Any = lambda *_: None  # noqa: E731 - a progress that says nothing
PHRASES = ("a cup", "a dog")
SCALE = TextWriterScale(steps=4, reward_steps=3, batch=4, reward_batch=4, held_out=3, bf16=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("told")
    eye_small.save_captions(out, ("train",) * 12 + ("validation",) * 6)
    sentences = (*PHRASES, "a dog that lies on a table")
    MemoryBank(np.eye(eye_small.TEXT, dtype=np.float32)[: len(sentences)], sentences).save(out / "memory.safetensors")
    return out


def test_captions_have_the_mean_vector_of_their_photo_and_phrases_their_own(folder: Path, tmp_path: Path) -> None:
    start = PrefixDecoder.from_pretrained(folder / "decoder")
    count = write_captions(folder, folder / "memory.safetensors", start, tmp_path / "texts", seed=0)
    texts, photos = Texts(tmp_path / "texts"), EyeFeatures(folder, "train")
    assert len(texts) == count
    by_group: dict[int, list[Any]] = {}
    for item in texts:
        by_group.setdefault(item.group, []).append(item)
    assert set(by_group) == {*range(12), 12, 13}  # the memory's long sentence is no phrase
    for group, items in by_group.items():
        said = {start.vocabulary.text(item.ids.tolist()) for item in items}
        if group >= 12:
            assert said == {PHRASES[group - 12]}
            wanted = np.eye(eye_small.TEXT)[group - 12]
        else:
            assert len(said) == 2
            vectors = photos.caption_vectors(group)
            mean = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).mean(axis=0)
            wanted = mean / np.linalg.norm(mean)
        for item in items:
            np.testing.assert_allclose(item.vector, wanted, atol=2e-3)


def test_the_gap_is_that_of_photos_the_eye_did_not_learn_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Watched(EyeFeatures):
        def __init__(self, path: Path, split: str) -> None:
            asked.append(split)
            super().__init__(path, split)

    monkeypatch.setattr(text_writer, "EyeFeatures", Watched)
    gap = measure_gap(folder, folder / "eye", QUIET)
    assert asked == ["validation"]
    assert gap.map.shape == (eye_small.TEXT, eye_small.TEXT)


def test_a_build_ends_with_a_writer_and_a_second_one_only_reads(folder: Path, tmp_path: Path) -> None:
    part = build_text_writer(folder, folder, tmp_path, SCALE, QUIET)
    learnt, start = (PrefixDecoder.from_pretrained(one) for one in (part, folder / "decoder"))
    assert learnt.config == start.config
    assert any(not bool((a == b).all()) for a, b in zip(learnt.parameters(), start.parameters(), strict=True))
    assert learnt.write(np.eye(eye_small.TEXT, dtype=np.float32)[:1])[0].text
    learnt_in = [tmp_path / run / "checkpoints" for run in ("likelihood", "reward")]
    before = {path: path.stat().st_mtime_ns for run in learnt_in for path in run.rglob("*")}
    build_text_writer(folder, folder, tmp_path, SCALE, QUIET)
    assert before
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_features_without_captions_are_refused(tmp_path: Path) -> None:
    eye_small.save_captions(tmp_path, ("train",) * 3 + ("validation",))
    with pytest.raises(InvalidFile, match="too few to measure a gap"):
        measure_gap(tmp_path, tmp_path / "eye", QUIET)
