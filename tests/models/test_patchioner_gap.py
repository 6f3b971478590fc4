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
from saywhere.models.patchioner.bridge import Bridge, BridgeConfig, kept_signal, train_bridge
from saywhere.models.patchioner.gap import BridgeGap, Direct, Gap, MemoryGap
from saywhere.models.patchioner.knowledge import FilteredKnowledgeGap, KnowledgeGap, prompt
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.noise import GapNoise, add_noise

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


def named_nouns(sentences: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(word for word in sentence.split() if word in NOUNS) for sentence in sentences]


@pytest.fixture(scope="module")
def bank() -> MemoryBank:
    return MemoryBank(WordEncoder().embed(SENTENCES), SENTENCES)


@pytest.fixture(scope="module")
def bridge() -> Bridge:
    torch.manual_seed(0)
    return Bridge(BridgeConfig(SIZE, width=16, blocks=1)).eval()


# ── noise ──


@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.126])
def test_noise_has_the_spread_that_was_asked_for(sigma: float) -> None:
    vectors = torch.zeros(4000, SIZE)
    vectors[:, 0] = 7.0
    noisy = add_noise(vectors, sigma, generator())
    torch.testing.assert_close(noisy.norm(dim=1), torch.ones(4000))
    # Undo the last step, which made the length 1: along the other axes noise over the noisy first number is seen.
    assert float((noisy[:, 1:] / noisy[:, :1]).std()) == pytest.approx(sigma, rel=0.06, abs=1e-6)


def test_each_row_draws_its_own_spread_between_two() -> None:
    vectors = torch.eye(1000)[:1].expand(3000, -1)
    noisy = add_noise(vectors, (0.02, 0.10), generator())
    spreads = (noisy[:, 1:] / noisy[:, :1]).std(dim=1)
    low, high = spreads.quantile(torch.tensor([0.05, 0.95])).tolist()
    assert (low, high) == (pytest.approx(0.024, abs=0.004), pytest.approx(0.096, abs=0.008))
    assert float(spreads.median()) == pytest.approx(0.06, abs=0.005)


def test_the_same_generator_gives_the_same_noise() -> None:
    vectors = torch.ones(3, SIZE)
    assert torch.equal(add_noise(vectors, 0.1, generator(4)), add_noise(vectors, 0.1, generator(4)))
    assert not torch.equal(add_noise(vectors, 0.1, generator(4)), add_noise(vectors, 0.1, generator(5)))


@pytest.mark.parametrize("sigma", [-0.1, (0.2, 0.1), float("nan"), float("inf")])
def test_a_spread_that_cannot_be_is_a_clear_error(sigma: float) -> None:
    with pytest.raises(InvalidValue, match="sigma"):
        add_noise(torch.ones(1, 4), sigma, generator())


def test_gap_noise_has_the_mean_and_covariance_of_the_residuals() -> None:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(3, SIZE)) * np.array([[0.3], [0.2], [0.1]])
    residuals = rng.normal(size=(5000, 3)) @ factors + 0.02 * rng.normal(size=(5000, SIZE)) + np.linspace(-1, 1, SIZE)
    drawn = GapNoise.fit(residuals, rank=3).sample(20_000, generator()).numpy()
    np.testing.assert_allclose(drawn.mean(axis=0), residuals.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(residuals.T), atol=0.02)


def test_gap_noise_comes_back_from_disk_and_moves_texts(tmp_path: Path) -> None:
    noise = GapNoise.fit(np.random.default_rng(0).normal(size=(50, SIZE)) * 0.1 + 0.5, rank=4)
    noise.save(tmp_path)
    again = GapNoise.load(tmp_path)
    texts = torch.eye(SIZE)
    moved = again.add(texts, generator(1))
    assert torch.equal(moved, noise.add(texts, generator(1)))
    torch.testing.assert_close(moved.norm(dim=1), torch.ones(SIZE))
    assert float(moved.mean()) > float(texts.mean()) + 0.1
    with pytest.raises(InvalidValue, match="8 numbers each"):
        again.add(torch.ones(2, 8), generator())


@pytest.mark.parametrize(
    ("residuals", "reason"),
    [(np.ones((1, 4)), "n at least 2"), (np.full((3, 4), np.nan), "NaN"), (np.ones(3), "shape")],
)
def test_residuals_that_say_nothing_are_a_clear_error(residuals: np.ndarray, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        GapNoise.fit(residuals)


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
        lambda done, total: seen.append((done, total)),
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


# ── knowledge ──


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["dog", "beach"], "There are dog, beach in image."),
        (["dog"], "There are dog in image."),
        ([], "There are something in image."),
    ],
)
def test_a_prompt_names_what_is_there(names: list[str], sentence: str) -> None:
    assert prompt(names) == sentence


def test_nouns_near_the_vector_make_the_prompt_and_far_ones_do_not() -> None:
    encoder = WordEncoder()
    nouns = MemoryBank(encoder.embed(NOUNS), NOUNS)
    gap = KnowledgeGap(nouns, temperature=0.1, least_share=0.1)
    closed = gap.close(np.stack([encoder.word("cat") + encoder.word("beach"), encoder.word("car")]))
    assert closed.prompts is not None
    assert {closed.prompts[0]} <= {"There are cat, beach in image.", "There are beach, cat in image."}
    assert closed.prompts[1] == "There are car in image."
    everything = KnowledgeGap(nouns, temperature=10.0, least_share=0.9).close(encoder.embed(["dog"]))
    assert everything.prompts == ("There are something in image.",)


def test_only_nouns_that_the_nearest_sentences_agree_on_make_the_prompt(bank: MemoryBank) -> None:
    encoder = WordEncoder()
    gap = FilteredKnowledgeGap(bank, encoder, read=named_nouns)
    closed = gap.close(encoder.embed(["a dog with a ball on a beach"]))
    near = [one.sentence for one in closed.nearest[0]]
    assert len(near) == 5
    assert "a red car" not in near
    # dog or puppy: all five; beach and ball: two each, which is less than three.
    assert closed.prompts in {("There are dog in image.",), ("There are puppy in image.",)}
    two = FilteredKnowledgeGap(bank, encoder, votes=2, read=named_nouns).close(encoder.embed(["a dog on a beach"]))
    assert two.prompts is not None
    assert sorted(two.prompts[0].removeprefix("There are ").removesuffix(" in image.").split(", ")[1:]) == [
        "ball",
        "beach",
    ]


def test_nouns_that_are_not_alike_are_not_merged(bank: MemoryBank) -> None:
    gap = FilteredKnowledgeGap(bank, WordEncoder(), alike=0.99, votes=3, read=named_nouns)
    assert gap.close(WordEncoder().embed(["a dog"])).prompts == ("There are dog in image.",)
    assert FilteredKnowledgeGap(bank, WordEncoder(), alike=0.99, votes=4, read=named_nouns).close(
        WordEncoder().embed(["a dog"])
    ).prompts == ("There are something in image.",)


def test_knowledge_goes_with_another_way_for_the_vector(bank: MemoryBank) -> None:
    encoder = WordEncoder()
    memory = MemoryGap(bank, 0.05)
    vectors = encoder.embed(["a dog", "red car"])
    closed = KnowledgeGap(MemoryBank(encoder.embed(NOUNS), NOUNS), soft=memory).close(vectors)
    np.testing.assert_array_equal(closed.vectors, memory.close(vectors).vectors)
    assert closed.nearest[1][0].sentence == "a red car"


@pytest.mark.parametrize("options", [{"votes": 6}, {"votes": 0}, {"most": 0}])
def test_votes_that_nobody_can_win_are_a_clear_error(bank: MemoryBank, options: dict[str, int]) -> None:
    with pytest.raises(InvalidValue):
        FilteredKnowledgeGap(bank, WordEncoder(), **options)  # type: ignore[arg-type]


# ── all ways ──


@pytest.fixture(params=["direct", "memory", "top", "bridge", "knowledge", "filtered"])
def gap(request: pytest.FixtureRequest, bank: MemoryBank, bridge: Bridge) -> Gap:
    encoder = WordEncoder()
    ways: dict[str, Gap] = {
        "direct": Direct(),
        "memory": MemoryGap(bank, 0.05),
        "top": MemoryGap(bank, 0.05, top=2),
        "bridge": BridgeGap(bridge),
        "knowledge": KnowledgeGap(MemoryBank(encoder.embed(NOUNS), NOUNS), temperature=0.1),
        "filtered": FilteredKnowledgeGap(bank, encoder, votes=2, read=named_nouns),
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
        if together.prompts is not None:
            assert alone.prompts == together.prompts[i : i + 1]


def test_no_regions_give_nothing_and_bad_ones_a_clear_error(gap: Gap) -> None:
    closed = gap.close(np.empty((0, SIZE), dtype=np.float32))
    assert closed.vectors.shape == (0, SIZE)
    assert closed.nearest == []
    assert not closed.prompts
    for bad in (np.ones(SIZE), np.zeros((1, SIZE)), np.full((1, SIZE), np.nan)):
        with pytest.raises(InvalidValue, match="vectors"):
            gap.close(bad)
