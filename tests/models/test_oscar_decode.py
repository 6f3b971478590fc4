"""Captions written word by word: what is kept between words changes nothing but the time."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from saywhere.core import InvalidValue, UnknownName
from saywhere.models.oscar import Oscar
from saywhere.models.oscar.batch import TaggedCaptionBatch
from saywhere.models.oscar.decode import _rules
from saywhere.models.search import GenerationConfig, Hypothesis, Steps, search
from tests.models import oscar_small as small

BEAM = GenerationConfig("beam", beams=5)


class Again(Steps):
    """Reads everything again for each word: what `OscarSteps` must agree with."""

    def __init__(self, model: Oscar, images: list, level: int) -> None:
        self.model, self.level = model, level
        self.context = model.reader.context(images)
        self.rows = torch.arange(len(images))
        self.said = torch.full((len(images), 1), model.coding.cls_id)

    def start(self) -> Tensor:
        return self._scores()

    def advance(self, tokens: Tensor) -> Tensor:
        self.said = torch.cat([self.said, tokens[:, None]], dim=1)
        return self._scores()

    def reorder(self, rows: Tensor) -> None:
        self.rows, self.said = self.rows[rows], self.said[rows]

    def _scores(self) -> Tensor:
        count = len(self.said)
        ids = torch.cat([self.said, torch.full((count, 1), self.model.coding.mask_id)], dim=1)
        names = ("tags", "tag_index", "tags_there", "regions", "regions_there")
        context = type(self.context)(*(getattr(self.context, name)[self.rows] for name in names))
        lengths = torch.full((count,), ids.shape[1])
        batch = TaggedCaptionBatch(context, ids, lengths, torch.full((count,), self.level))
        return self.model(batch, lengths[:, None] - 1)[:, 0]


def again(model: Oscar, images: list, how: GenerationConfig, level: int = 0) -> list[Hypothesis]:
    most = how.most_words(model.config.max_words)
    with torch.no_grad():
        return search(Again(model, images, level), _rules(model, how, most))


@pytest.mark.parametrize(
    "how", [BEAM, GenerationConfig("greedy"), GenerationConfig("beam", beams=3, no_repeat=2, max_words=7)]
)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_between_words_changes_neither_words_nor_scores(how: GenerationConfig, seed: int) -> None:
    model = small.network(seed, levels=("object", "scene"))
    images = [*small.images(), *(small.image(10 + i, i, i % 4) for i in range(8))]
    for number, level in enumerate(model.config.levels):
        fast, slow = model.write(images, level, how), again(model, images, how, number)
        assert [one.text for one in fast] == [model.coding.decode(one.tokens) for one in slow]
        for one, two in zip(fast, slow, strict=True):
            assert one.score == pytest.approx(two.score, abs=1e-5)
            assert one.token_logprobs == pytest.approx(two.logprobs, abs=1e-5)
    assert len({one.text for one in fast}) >= 3


def test_a_caption_is_the_same_alone_and_among_others() -> None:
    model = small.network()
    for one, seen in zip(model.write(small.images()), small.images(), strict=True):
        (alone,) = model.write([seen])
        assert alone.text == one.text
        assert alone.score == pytest.approx(one.score, abs=1e-5)


def test_images_without_tags_or_regions_or_anything_get_a_caption_too() -> None:
    for one in small.network().write(small.images()):
        assert one.text
        assert math.isfinite(one.score)
        assert 0 < math.exp(one.score) < 1


def test_the_score_is_the_mean_log_probability_with_the_end() -> None:
    model = small.network()
    with torch.no_grad():
        model.word_bias[model.coding.sep_id] = 9.0
    (one,) = model.write([small.image()], how=GenerationConfig("beam", min_words=3))
    ids = model.reader.caption(one.text)
    batch = model.reader.batch([small.image()], [one.text], ["object"])
    with torch.no_grad():
        likely = model.every_word(batch).log_softmax(dim=-1)[0]
    each = likely[range(len(ids) - 1), list(ids[1:])].tolist()
    assert one.ended
    assert len(one.token_logprobs) >= 4
    assert one.token_logprobs == pytest.approx(each, abs=1e-5)
    assert one.score == pytest.approx(sum(each) / len(each), abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_captions_have_at_most_twenty_tokens_and_no_marker_nor_unknown_word(seed: int) -> None:
    model = small.network(seed)
    with torch.no_grad():
        # Nothing would be as likely as what must not be said, nor as unlikely as an end.
        model.word_bias[list(model.coding.never_generated)] = 9
        model.word_bias[model.coding.sep_id] = -30
    for one in model.write(small.images()):
        assert len(one.token_logprobs) == 20
        assert not one.ended
        assert "<unk>" not in one.text


def test_drawing_depends_on_the_seed_and_the_image_alone() -> None:
    model = small.network()
    how = GenerationConfig("nucleus", seed=3, top_p=1.0)
    said = [one.text for one in model.write(small.images(), how=how)]
    assert said == [one.text for one in model.write(small.images(), how=how)]
    assert said[1] == model.write([small.images()[1]], how=how)[0].text
    assert said != [one.text for one in model.write(small.images(), how=GenerationConfig("nucleus", seed=4, top_p=1.0))]


def test_no_image_no_caption() -> None:
    assert small.network().write([]) == []


def test_more_images_than_are_written_at_once_come_back_in_order() -> None:
    model = small.network()
    images = [small.image(i, 2, 1) for i in range(7)]
    many = model.write(images * 20)
    assert len(many) == 140
    assert [one.text for one in many] == [one.text for one in model.write(images)] * 20


def test_a_network_that_learns_is_at_rest_while_it_writes() -> None:
    model = small.network(dropout=0.5)
    wanted = [one.text for one in model.write(small.images())]
    model.train()
    assert [one.text for one in model.write(small.images())] == wanted
    assert model.training


def test_levels_and_limits_that_are_not_there_are_refused() -> None:
    model = small.network()
    with pytest.raises(UnknownName, match="unknown caption level 'scene'"):
        model.write([small.image()], "scene")
    with pytest.raises(InvalidValue, match="made for 20"):
        model.write([small.image()], how=GenerationConfig(max_words=21))
