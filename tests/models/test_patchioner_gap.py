from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from saywhere.core import InvalidValue
from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.models.patchioner.bridge import Bridge, BridgeConfig, BridgeGap, kept_signal, train_bridge
from saywhere.models.patchioner.memory import Direct, Gap, MemoryBank, MemoryGap

SIZE = 16
NOUNS = ("dog", "puppy", "cat", "beach", "ball", "car")
SENTENCES = (
    "a dog on a beach",
    "a puppy with a ball on a beach",
    "a dog runs after a ball",
    "a cat and a dog",
    "a puppy on the sand",
    "a red car",
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


class WordEncoder:
    """A text is the sum of its words, each a direction of its own; a puppy is much of a dog."""

    name, size = "words", SIZE
    fingerprint: dict[str, str | int] = {"text_encoder": "words"}  # noqa: RUF012 - as the protocol has it

    def embed(self, texts: Sequence[str], *, batch: int = 64, progress: object = None) -> NDArray[np.float32]:
        return unit(np.stack([sum(self.word(word) for word in text.split()) for text in texts]))

    def word(self, word: str) -> NDArray[np.float64]:
        if word == "puppy":
            return 0.8 * self.word("dog") + 0.6 * self.word("puppyish")
        if word in NOUNS:
            return np.eye(SIZE)[NOUNS.index(word)]
        return 0.2 * np.eye(SIZE)[8 + sum(map(ord, word)) % 8]


@pytest.fixture(scope="module")
def bank() -> MemoryBank:
    return MemoryBank(WordEncoder().embed(SENTENCES), SENTENCES)


@pytest.fixture(scope="module")
def bridge() -> Bridge:
    torch.manual_seed(0)
    return Bridge(BridgeConfig(SIZE, width=16, blocks=1)).eval()


# ── bridge ──


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_noise_grows_from_hardly_any_to_nearly_all(schedule: str) -> None:
    kept = kept_signal(BridgeConfig(SIZE, schedule=schedule))
    assert kept.shape == (1000,)
    assert bool((kept.diff() < 0).all())
    assert float(kept[0]) > 0.999
    assert 0 <= float(kept[-1]) < 1e-4
    if schedule == "cosine":
        whole, rest = math.cos(0.008 / 1.008 * math.pi / 2) ** 2, math.cos(0.608 / 1.008 * math.pi / 2) ** 2
        assert float(kept[599]) == pytest.approx(rest / whole, rel=1e-5)


def test_the_bridge_brings_images_to_the_texts_of_their_cluster() -> None:
    rng = np.random.default_rng(0)
    centres = unit(np.stack([np.eye(SIZE)[0] + np.eye(SIZE)[2], np.eye(SIZE)[1] + np.eye(SIZE)[2]]))
    which = rng.integers(0, 2, 600)
    texts = unit(centres[which] + 0.05 * rng.normal(size=(600, SIZE)))
    turned = np.linalg.qr(np.eye(SIZE) + 0.1 * rng.normal(size=(SIZE, SIZE)))[0]
    turned *= np.sign(np.diag(turned))
    shift = 0.8 * np.eye(SIZE)[3]
    images = unit(centres[which] @ turned + shift + 0.15 * rng.normal(size=(600, SIZE)))
    seen: list[tuple[int, int]] = []
    trained = train_bridge(
        texts,
        images.mean(axis=0),
        120,
        generator(),
        lambda _, done, total: seen.append((done, total)),
        config=BridgeConfig(SIZE, width=64, blocks=2),
        batch=64,
        rate=3e-3,
    )
    crossed = trained.cross(images)
    np.testing.assert_allclose(np.linalg.norm(crossed, axis=1), 1, atol=1e-5)
    before, after = ((rows * centres[which]).sum(axis=1).mean() for rows in (images, crossed))
    assert before < 0.85
    assert after > 0.95
    assert ((crossed @ centres.T).argmax(axis=1) == which).mean() > 0.95
    assert seen[-1] == (120, 120)


def test_a_text_seen_without_its_mean_can_be_told_from_that(bridge: Bridge) -> None:
    texts = torch.nn.functional.normalize(torch.randn(20, SIZE, generator=generator()) + 0.3, dim=1)
    bridge = Bridge(bridge.config)
    bridge.text_mean.copy_(texts.mean(dim=0))
    torch.testing.assert_close(bridge._as_text(texts - bridge.text_mean), texts)


def test_a_bridge_comes_back_from_disk_as_it_was(tmp_path: Path, bridge: Bridge) -> None:
    bridge.save(tmp_path)
    again = Bridge.load(tmp_path)
    vectors = np.random.default_rng(0).normal(size=(3, SIZE))
    np.testing.assert_array_equal(again.cross(vectors), bridge.cross(vectors))
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"cosine"', '"cosign"'))
    with pytest.raises(InvalidFile, match="Did you mean 'cosine'"):
        Bridge.load(tmp_path)


def test_the_same_seed_trains_the_same_bridge() -> None:
    texts = np.random.default_rng(0).normal(size=(20, SIZE))
    config = BridgeConfig(SIZE, width=8, blocks=1)
    one, two = (train_bridge(texts, np.zeros(SIZE), 3, generator(7), config=config).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: BridgeConfig(0), "size"),
        (lambda: BridgeConfig(4, width=5), "odd"),
        (lambda: train_bridge(np.ones((1, 4)), np.zeros(4), 1, generator()), "too few"),
        (lambda: train_bridge(np.ones((3, 4)), np.zeros(5), 1, generator()), "text_vectors"),
        (lambda: train_bridge(np.ones((3, 4)), np.full(4, np.nan), 1, generator()), "image_mean"),
        (lambda: Bridge(BridgeConfig(4, width=4, blocks=1)).cross(np.ones((1, 5))), "not \\(m, 4\\)"),
        (lambda: Bridge(BridgeConfig(4, width=4, blocks=1)).cross(np.ones((1, 4)), start=1001), "start"),
        (lambda: Bridge(BridgeConfig(4, width=4, blocks=1)).cross(np.ones((1, 4)), steps=0), "steps"),
    ],
)
def test_a_bridge_that_cannot_be_is_a_clear_error(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        make()
    with pytest.raises(UnknownName, match="noise schedule"):
        BridgeConfig(4, schedule="square")


# ── all ways ──


@pytest.fixture(params=["direct", "memory", "top", "bridge"])
def gap(request: pytest.FixtureRequest, bank: MemoryBank, bridge: Bridge) -> Gap:
    ways: dict[str, Gap] = {
        "direct": Direct(),
        "memory": MemoryGap(bank, 0.05),
        "top": MemoryGap(bank, 0.05, top=2),
        "bridge": BridgeGap(bridge),
    }
    return ways[request.param]


def test_a_region_gets_the_same_alone_and_among_others(gap: Gap) -> None:
    vectors = WordEncoder().embed(["a dog", "a cat on a beach", "car", "ball beach puppy", "a red sand"])
    together = gap.close(vectors)
    np.testing.assert_allclose(np.linalg.norm(together.vectors, axis=1), 1, atol=1e-5)
    assert together.vectors.dtype == np.float32
    for i in range(len(vectors)):
        alone = gap.close(vectors[i : i + 1])
        np.testing.assert_allclose(alone.vectors[0], together.vectors[i], atol=2e-6)
        assert [one.sentence for one in alone.nearest[0]] == [one.sentence for one in together.nearest[i]]


def test_no_regions_give_nothing_and_bad_ones_a_clear_error(gap: Gap) -> None:
    closed = gap.close(np.empty((0, SIZE), dtype=np.float32))
    assert closed.vectors.shape == (0, SIZE)
    assert closed.nearest == []
    for bad in (np.ones(SIZE), np.zeros((1, SIZE)), np.full((1, SIZE), np.nan)):
        with pytest.raises(InvalidValue, match="vectors"):
            gap.close(bad)
