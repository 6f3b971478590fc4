"""Texts that are to find photos: read as the text encoder reads them, until that is learnt better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saywhere.build.matching import (
    QUERIES,
    MatchingScale,
    build_matching,
    install_matching,
    matching_recipe,
    read_captions,
)
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats32
from saywhere.language.embed import MiniLM
from saywhere.learn.registry import make_task
from saywhere.models.eye.features import RegionNames, write_captions
from saywhere.models.patchioner.eyes import EncoderEyes
from saywhere.models.patchioner.matching import Matcher, MatcherConfig, MatchNet
from saywhere.models.patchioner.matching_task import QUERY_TEXTS
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.queries import QueryNet, read_queries
from saywhere.models.patchioner.seer_config import MEMORY, save_config
from saywhere.store import Store
from tests.language.small_bert import small_minilm
from tests.models import eye_small
from tests.models.test_patchioner_seer import CONFIG

WORDS = ["a", "person", "cup", "dog", "on", "table", "the", "runs"]
TEXTS = ["a dog runs", "the cup on a table", "person", "a person on the table"]
QUIET: Any = lambda *_: None  # noqa: E731 - a progress that says nothing


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> MiniLM:
    return small_minilm(tmp_path_factory.mktemp("bert"), WORDS, size=6, layers=3)


@pytest.mark.parametrize("layers", [1, 2])
def test_before_it_learnt_it_reads_as_the_text_encoder_does(layers: int, minilm: MiniLM) -> None:
    network = QueryNet.of(minilm.network, layers).eval()
    np.testing.assert_allclose(read_queries(network, TEXTS, minilm), minilm.embed(TEXTS), atol=1e-5)


def test_a_text_is_read_the_same_alone_and_among_longer_ones(minilm: MiniLM) -> None:
    network = QueryNet.of(minilm.network, 2).eval()
    together = read_queries(network, TEXTS, minilm)
    alone = np.concatenate([read_queries(network, [text], minilm) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert read_queries(network, [], minilm).shape == (0, 6)


def test_it_is_saved_and_opened_and_a_broken_one_is_refused(tmp_path: Path, minilm: MiniLM) -> None:
    QueryNet.of(minilm.network, 2).save_pretrained(tmp_path)
    opened = QueryNet.from_pretrained(tmp_path).eval()
    np.testing.assert_allclose(read_queries(opened, TEXTS, minilm), minilm.embed(TEXTS), atol=1e-5)
    (tmp_path / "config.json").write_text((tmp_path / "config.json").read_text().replace("most_tokens", "tokens"))
    with pytest.raises(InvalidFile, match="tokens"):
        QueryNet.from_pretrained(tmp_path)


@pytest.mark.parametrize("layers", [0, 3])
def test_it_keeps_at_least_one_layer_of_the_encoder_and_learns_one(layers: int, minilm: MiniLM) -> None:
    with pytest.raises(InvalidValue, match="not between 0 and the 3"):
        QueryNet.of(minilm.network, layers)


class Plain:
    """A text encoder that has no layers to go on from."""

    name, size, fingerprint = "plain", 6, {}

    def embed(self, texts: Sequence[str], **_: Any) -> Floats32:
        vectors = np.array([[len(text) + 1.0, 1, 0, 0, 0, 0] for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def matcher(minilm: MiniLM, *, query: bool) -> Matcher:
    shape = MatcherConfig(16, 6, width=8, heads=2, layers=1, feed_forward=8)
    if not query:
        return Matcher(MatchNet(shape))
    start = QueryNet.of(minilm.network, 1)
    network = MatchNet(replace(shape, query_layers=1, query_heads=2, query_feed_forward=16))
    assert network.query is not None
    network.query.load_state_dict(start.state_dict())
    torch.nn.init.normal_(network.query.layers[0].linear2.bias)  # type: ignore[arg-type]
    return Matcher(network)


def test_eyes_read_queries_as_their_matcher_learnt_to_and_other_texts_as_before(minilm: MiniLM) -> None:
    learnt = matcher(minilm, query=True)
    eyes = EncoderEyes(None, None, matcher=lambda: learnt)  # type: ignore[arg-type]
    np.testing.assert_allclose(eyes.queries(TEXTS, minilm), learnt.queries(TEXTS, minilm))
    assert np.abs(eyes.queries(TEXTS, minilm) - minilm.embed(TEXTS)).max() > 0.05
    np.testing.assert_allclose(eyes.texts(minilm.embed(TEXTS)), minilm.embed(TEXTS), atol=1e-6)


@pytest.mark.parametrize("has_matcher", [False, True])
def test_where_nothing_was_learnt_queries_are_texts(has_matcher: bool, minilm: MiniLM) -> None:
    opened = matcher(minilm, query=False)
    eyes = EncoderEyes(None, None, matcher=(lambda: opened) if has_matcher else None)  # type: ignore[arg-type]
    np.testing.assert_allclose(eyes.queries(TEXTS, Plain()), Plain().embed(TEXTS), atol=1e-6)
    with pytest.raises(InvalidValue, match="no way of its own"):
        opened.queries(TEXTS, minilm)


def test_another_text_encoder_is_refused(minilm: MiniLM) -> None:
    with pytest.raises(InvalidValue, match="is plain, but queries are read by"):
        matcher(minilm, query=True).queries(TEXTS, Plain())


def features_of(folder: Path) -> Path:
    """Photos whose captions name what they show by a word, while the vectors of captions know nothing of it."""
    eye_small.save_features(folder / "all", ("train",) * 30)
    kinds = [int(row["classes"][0]) for row in Store(folder / "all" / "photos")]
    # One of each kind is to be found.
    held = [kinds.index(kind) for kind in range(len(eye_small.NAMES))]
    eye_small.save_captions(folder, ["validation" if number in held else "train" for number in range(len(kinds))])
    names = [eye_small.NAMES[kind] for kind in kinds]
    told = ((f"{number:012}", [f"{name} {name}", f"{name} {name} {name}"]) for number, name in enumerate(names))
    box = (0.0, 0.0, 0.5, 0.5)
    write_captions(folder, ((key, some, [RegionNames(box, (some[0],))]) for key, some in told))
    return folder


def test_what_was_read_of_captions_is_kept_and_gone_on_with(tmp_path: Path, minilm: MiniLM) -> None:
    folder, said = features_of(tmp_path / "eye-data"), []
    for _ in range(2):
        read_captions(folder, tmp_path / "made", minilm, 2, lambda *what: said.append(what[1:]))
    assert said == [(30, 30)]
    row = Store(tmp_path / "made" / QUERY_TEXTS)[0]
    assert row["states"].shape == (sum(row["tokens"]), 6)
    assert row["tokens"].tolist() == [4, 5]


def test_texts_learn_to_find_photos_beside_what_tells_photos_apart(tmp_path: Path, minilm: MiniLM) -> None:
    folder = features_of(tmp_path / "eye-data")
    scale = MatchingScale(steps=80, batch=12, rate=1e-2, query_rate=3e-3, query_layers=2, bf16=False)
    part = build_matching(folder, folder / "eye", tmp_path / "made", scale, QUIET, minilm)
    learnt = Matcher.from_pretrained(part)
    assert learnt.reads_queries
    task: Any = make_task(matching_recipe(folder, tmp_path / "made", scale))
    model = task.build(torch.Generator()).eval()
    np.testing.assert_allclose(read_queries(model.network.query, TEXTS, minilm), minilm.embed(TEXTS), atol=1e-5)
    before = task.validate(model)["r1"]
    model.network.load_state_dict(learnt.network.state_dict())
    assert task.validate(model)["r1"] > max(before, 0.6)
    model_folder = tmp_path / "model"
    model_folder.mkdir()
    save_config(model_folder, CONFIG | {"encoder": "eye", "detector": True})
    MemoryBank(minilm.embed(TEXTS), TEXTS).save(model_folder / MEMORY)
    install_matching(part, model_folder, minilm)
    remembered = MemoryBank.load(model_folder / MEMORY)
    np.testing.assert_allclose(remembered.vectors, minilm.embed(TEXTS), atol=0.02)
    assert remembered.queries is not None
    np.testing.assert_allclose(remembered.queries.vectors, learnt.queries(TEXTS, minilm), atol=0.02)
    a_cup, a_dog, two_cups = learnt.queries(["cup cup", "dog dog", "cup cup cup"], minilm)
    assert a_cup @ two_cups > a_cup @ a_dog
    again = QueryNet.from_pretrained(tmp_path / "made" / QUERIES / "start")
    assert np.abs(learnt.queries(TEXTS, minilm) - read_queries(again.eval(), TEXTS, minilm)).max() > 0.01
