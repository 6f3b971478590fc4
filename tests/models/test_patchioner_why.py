"""The likelihood of a word as a function of patches: the same numbers, and gradients that are right."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from saywhere.core import Box, BoxSet, InvalidValue, Point, Region, Trace, WholeImage
from saywhere.models.patchioner.alignment import Talk2DinoAlignment
from saywhere.models.patchioner.eyes import Blend, EncoderEyes
from saywhere.models.patchioner.memory import Direct, Gap, MemoryBank, MemoryGap
from saywhere.models.patchioner.seer import Seer, SeerLook
from saywhere.models.patchioner.tags import ClassNames, Tags
from saywhere.models.patchioner.why import WordScore, remembered
from saywhere.models.patchioner.writers import MemoryWriter, VectorWriter
from tests.models.patchioner_seeing import (
    LEFT,
    THINGS,
    ColourEncoder,
    ThingFinder,
    ThingWriter,
    alignment,
    attentive_decoder,
    bank,
    photo,
)

REGIONS = [
    WholeImage(),
    Box(*LEFT),
    Point(0.9, 0.9),
    BoxSet((Box(0, 0, 0.3, 0.3), Box(0, 0, 0.6, 0.6))),
    Trace([(0.1, 0.1, 0.0), (0.6, 0.1, 1.0), (0.9, 0.9, 3.0)]),
]


def loud_seer(gap: Gap | None = None, names: bool = True, classes: bool = True) -> Seer:
    """One in which everything that may enter a vector does."""
    drawn = np.random.default_rng(0)
    tags = Tags(THINGS, *(drawn.normal(size=size).astype(np.float32) for size in ((3,), (9, 3), (3, 3))))
    kinds = ClassNames(*(drawn.normal(size=size).astype(np.float32) for size in ((5, 3), (5,), (5, 3))))
    named = (ThingFinder(), tags) if names else (None, None)
    blend = Blend(0.2, 1.5, 0.4 if classes else 0.0)
    eyes = EncoderEyes(ColourEncoder(), alignment(), *named, kinds if classes else None, blend)
    return Seer(eyes, MemoryWriter(bank(), VectorWriter(attentive_decoder(), gap or MemoryGap(bank(), 0.1))))


def whole_score(score: WordScore) -> float:
    there = torch.ones(1, len(score.cells), dtype=torch.bool)
    return score(score.features[None], there, torch.zeros(1)).item()


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize(("names", "classes"), [(True, True), (False, True), (True, False), (False, False)])
def test_the_path_that_gradients_follow_gives_the_vectors_of_the_view(
    region: Region, names: bool, classes: bool
) -> None:
    look = loud_seer(names=names, classes=classes).look(photo())
    score = look.word_score(region, "a red cat", 1)
    found = score.vectors((score.weights @ score.features)[None], score.names)
    np.testing.assert_allclose(found.detach().numpy(), look.aligned.vectors([region]), atol=1e-5)


@pytest.mark.parametrize("gap", [MemoryGap(bank(), 0.1), MemoryGap(bank(), 0.1, top=2), Direct()])
def test_the_scores_of_all_words_are_those_that_the_writer_gives_its_own_text(gap: Gap) -> None:
    seer = loud_seer(gap)
    look = seer.look(photo())
    [written], _ = seer.writer.write(look.aligned.vectors([Box(*LEFT)]), seer.generation)
    words = written.text.split()
    scores = [whole_score(look.word_score(Box(*LEFT), written.text, i)) for i in range(len(words))]
    pieces = len(written.token_logprobs) - written.ended
    assert len(words) > 1
    assert sum(scores) == pytest.approx(sum(written.token_logprobs[:pieces]), abs=1e-4)


def test_a_word_of_several_pieces_scores_their_sum() -> None:
    look = loud_seer().look(photo())
    parts = [whole_score(look.word_score(WholeImage(), "a red cat .", i)) for i in range(4)]
    assert whole_score(look.word_score(WholeImage(), "a red cat.", 2)) == pytest.approx(parts[2] + parts[3], abs=1e-5)


@pytest.mark.parametrize("top", [None, 3])
def test_gradients_through_the_memory_are_those_of_finite_differences(top: int | None) -> None:
    drawn = np.random.default_rng(1)
    memory = MemoryGap(MemoryBank(drawn.normal(size=(2_500, 4)), ["a text"] * 2_500), 0.2, top)
    at = torch.nn.functional.normalize(torch.from_numpy(drawn.normal(size=(3, 4))).float(), dim=1)
    pull = torch.from_numpy(drawn.normal(size=(3, 4))).float()

    def pulled(vectors: torch.Tensor) -> torch.Tensor:
        return (remembered(vectors, memory) * pull).sum()

    leaf = at.clone().requires_grad_()
    pulled(leaf).backward()
    step = 3e-3
    for row in range(3):
        # Along the sphere only: the memory brings what it is asked to length 1.
        along = torch.linalg.svd(at[row : row + 1]).Vh[1:]
        for direction in along:
            moved = torch.zeros_like(at)
            moved[row] = step * direction
            slope = (pulled(at + moved) - pulled(at - moved)) / (2 * step)
            assert leaf.grad is not None
            assert float(leaf.grad[row] @ direction) == pytest.approx(float(slope), abs=0.02)


def test_gradients_of_the_whole_path_are_those_of_finite_differences() -> None:
    score = loud_seer().look(photo()).word_score(Box(*LEFT), "a red cat", 2)
    there = torch.ones(1, len(score.cells), dtype=torch.bool)
    leaf = score.features[None].clone().requires_grad_()
    score(leaf, there, torch.zeros(1)).sum().backward()
    assert leaf.grad is not None
    step = 0.05
    for cell, number in ((0, 0), (3, 1), (7, 2)):
        moved = torch.zeros_like(score.features)
        moved[cell, number] = step
        versions = torch.stack([score.features + moved, score.features - moved])
        above, below = score(versions, there.expand(2, -1), torch.zeros(2)).tolist()
        assert float(leaf.grad[0, cell, number]) == pytest.approx((above - below) / (2 * step), abs=2e-3)


def test_a_patch_that_is_gone_leaves_its_weight_to_the_others_and_none_at_all_looks_like_the_mean_patch() -> None:
    look = loud_seer().look(photo())
    score = look.word_score(Box(*LEFT), "a red cat", 2)
    there = torch.ones(2, len(score.cells), dtype=torch.bool)
    there[0, 1:] = False
    alone, none = there[0].clone(), torch.zeros_like(there[0])
    found = score(score.features.expand(2, -1, -1), torch.stack([alone, none]), torch.zeros(2))
    blank = score(torch.zeros_like(score.features)[None], there[1:], torch.zeros(1))
    assert found[1].item() == pytest.approx(blank[0].item(), abs=1e-5)
    # All patches on the left are the same red.
    assert found[0].item() == pytest.approx(whole_score(score), abs=1e-5)


def test_silent_names_are_those_of_a_detector_that_found_nothing() -> None:
    seer = loud_seer()
    look = seer.look(photo())
    seer.eyes.detector.found = ()
    nothing = seer.look(photo())
    quiet = look.word_score(Box(*LEFT), "a red cat", 2).without_names()
    assert quiet == pytest.approx(whole_score(nothing.word_score(Box(*LEFT), "a red cat", 2)), abs=1e-5)
    assert quiet != pytest.approx(whole_score(look.word_score(Box(*LEFT), "a red cat", 2)), abs=1e-3)
    assert loud_seer(names=False).look(photo()).word_score(WholeImage(), "a cat", 0).without_names() is None


def test_dropout_changes_nothing_and_stays_as_it_was() -> None:
    seer = loud_seer()
    score = seer.look(photo()).word_score(WholeImage(), "a red cat", 2)
    rested = whole_score(score)
    decoder = seer.writer.objects.decoder
    decoder.train()
    assert [whole_score(score) for _ in range(3)] == [rested] * 3
    assert decoder.training


@pytest.mark.parametrize(
    ("text", "index", "reason"),
    [
        ("a red cat", 3, "none of the 3 words"),
        ("a red cat", -1, "none of the 3 words"),
        ("", 0, "none of the 0 words"),
        ("a zebra", 1, "does not know"),
        ("a a a a a cat", 5, "too long"),
    ],
)
def test_words_that_cannot_be_explained_are_refused(text: str, index: int, reason: str) -> None:
    look = loud_seer().look(photo())
    with pytest.raises(InvalidValue, match=reason):
        look.word_score(WholeImage(), text, index)


def broken(look: SeerLook, part: str) -> SeerLook:
    if part == "writer":
        look.seer.writer.objects = VectorWriter(ThingWriter())
    elif part == "gap":
        look.seer.writer.objects = VectorWriter(attentive_decoder(), object())
    else:
        look.aligned.alignment = object()
    return look


@pytest.mark.parametrize("part", ["writer", "gap", "alignment"])
def test_parts_that_gradients_cannot_follow_are_refused_by_name(part: str) -> None:
    look = broken(loud_seer().look(photo()), part)
    with pytest.raises(InvalidValue, match=part):
        whole_score(look.word_score(WholeImage(), "a red cat", 1))


def test_features_that_need_no_alignment_are_followed_as_they_are() -> None:
    seer = loud_seer(names=False, classes=False)
    look = seer.look(photo())
    before = whole_score(look.word_score(Box(*LEFT), "a red cat", 2))
    for none in (Talk2DinoAlignment(3, 3), None):
        look.aligned.alignment = none
        assert whole_score(look.word_score(Box(*LEFT), "a red cat", 2)) == pytest.approx(before)
