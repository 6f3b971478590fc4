"""A folder of prepared data whose content was altered is not taken for the one it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from saywhere.language.vocabulary import Vocabulary
from saywhere.models.mitr.prepared import Prepared, PreparedNarrative, save_prepared
from saywhere.models.oscar import LevelCaptions
from saywhere.models.patchioner.data import Pairs, Texts, save_pairs, save_texts
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown import Captions, Questions
from tests.models import oscar_small, updown_small

SPLITS = ("train", "train", "validation")


def _narratives(folder: Path) -> None:
    images = {name: RegionFeatures(np.ones((2, 3)), np.tile([0, 0, 1, 1], (2, 1))) for name in SPLITS}
    words, boxes = np.array([3, 4]), np.zeros((2, 4), np.float32)
    kept = [PreparedNarrative(name, name, words, boxes, np.ones(2, bool), name) for name in SPLITS]
    save_prepared(folder, images, kept, Vocabulary.of_words(["a cup"]), {})


def _texts(folder: Path) -> None:
    save_texts(folder, ["a cup", "a dog"], np.eye(2), Vocabulary.of_words(["a cup", "a dog"]), {})


def _pairs(folder: Path) -> None:
    save_pairs(folder, np.eye(2), np.eye(2), np.arange(2), {})


@pytest.mark.parametrize(
    ("save", "read"),
    [
        (_narratives, lambda folder: Prepared(folder).fingerprint),
        (_texts, lambda folder: Texts(folder).fingerprint),
        (_pairs, lambda folder: Pairs(folder).fingerprint),
        (lambda folder: updown_small.save_coloured_questions(folder, SPLITS), lambda f: Questions(f).fingerprint),
        (lambda folder: updown_small.save_coloured_captions(folder, SPLITS), lambda f: Captions(f).fingerprint),
        (lambda folder: oscar_small.save_captions(folder, SPLITS), lambda f: LevelCaptions(f).fingerprint),
    ],
    ids=["narratives", "texts", "pairs", "questions", "captions", "level captions"],
)
def test_a_byte_altered_in_any_shard_changes_the_fingerprint(
    tmp_path: Path, save: Callable[[Path], object], read: Callable[[Path], str]
) -> None:
    save(tmp_path)
    before = read(tmp_path)
    assert read(tmp_path) == before
    shards = sorted(tmp_path.rglob("*.safetensors"))
    assert shards
    for shard in shards:
        content = shard.read_bytes()
        shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert read(tmp_path) != before, shard.name
        shard.write_bytes(content)
