"""Oscar's sequence, who sees whom in it, and that neither padding nor speed changes what it says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from saywhere.core import InvalidValue, UnknownName
from saywhere.models.oscar import MARKERS, Oscar, OscarConfig, OwnWords, TokenKind
from saywhere.models.oscar.batch import Context, Reader, TaggedCaptionBatch
from saywhere.models.oscar.mask import additive, attention_mask, twinned_mask
from tests.models import oscar_small as small

TEXTS = ["a cup and a dog", "the picture is taken in a kitchen", "dog", "", "a boat", "a bed and a palm tree"]
OBJECT = ["object"] * 6


def all_scores(model: Oscar, batch: TaggedCaptionBatch) -> torch.Tensor:
    """(b, c, words) scores of every place of the captions; those of padding are [CLS]'s."""
    places = torch.arange(batch.captions.shape[1]).expand_as(batch.captions)
    with torch.no_grad():
        scores: torch.Tensor = model(batch, torch.where(batch.there, places, 0))
    return scores


def test_the_sequence_is_caption_then_tags_then_regions() -> None:
    model = small.network()
    words, seen = model.coding, small.image(0, 2, ["palm tree", "cup"])
    batch = model.reader.batch([seen], ["A dog"], ["object"])
    a, dog, palm, tree, cup = (words.encode(word)[0] for word in ("a", "dog", "palm", "tree", "cup"))
    assert batch.captions.tolist() == [[words.cls_id, a, dog, words.sep_id]]
    assert batch.context.tags.tolist() == [[palm, tree, cup, words.sep_id]]
    assert batch.context.tag_index.tolist() == [[0, 0, 1, -1]]
    box = seen.boxes_xyxy[1]
    wanted = [*seen.features[1], *box, box[2] - box[0], box[3] - box[1]]
    assert batch.context.regions[0, 1].tolist() == pytest.approx(wanted)


def test_tags_keep_their_slots_whatever_the_caption() -> None:
    model = small.network()
    with torch.no_grad():
        tags = model.embed_context(model.reader.context([small.image(0, 0, ["cup"])]))[0, 0]
        at_40 = model.words(torch.tensor(model.coding.encode("cup")))[0] + model.positions.weight[40]
        torch.testing.assert_close(tags, model.text_norm(at_40 + model.types.weight[1]))


def test_tags_that_do_not_fit_are_cut_whole_and_their_end_stays() -> None:
    model = small.network(caption_slots=8, text_slots=13, max_words=5)
    for tags, kept in (
        (["cup", "palm tree", "dog"], 3),
        (["cup", "palm tree", "palm tree"], 2),
        (["cup", "dog", "bed", "oven", "boat"], 4),
    ):
        context = model.reader.context([small.image(0, 1, tags)])
        assert context.tags.shape[1] <= 5
        assert context.tags[0, -1] == model.coding.sep_id
        assert context.tag_index.max() + 1 == kept


def test_a_long_caption_is_cut_and_its_end_stays() -> None:
    model = small.network(caption_slots=6, text_slots=12, max_words=4)
    words = model.coding
    ids = model.reader.caption("a cup and a dog and a bed")
    assert ids == (words.cls_id, *words.encode("a cup and a"), words.sep_id)


def test_regions_beyond_the_limit_are_left_out() -> None:
    model = small.network(most_regions=3)
    seen = small.image(0, 7, 1)
    context = model.reader.context([seen])
    assert context.regions.shape[1] == 3
    torch.testing.assert_close(context.regions[0, :, : small.REGION], torch.from_numpy(seen.features[:3].copy()))
    assert model.attend([seen]).index.max() == 2


def test_what_is_out_of_sight_keeps_its_place_as_padding() -> None:
    model = small.network()
    seen = small.image(0, 3, ["palm tree", "cup", "dog"]).without(tags=[0], regions=[1])
    context = model.reader.context([seen])
    pad = model.coding.pad_id
    assert context.tags[0, :2].tolist() == [pad, pad]
    assert context.tags_there[0].tolist() == [False, False, True, True, True]
    assert context.regions_there[0].tolist() == [True, False, True]
    parts = model.attend([seen]).parts[0].tolist()
    assert parts == [
        TokenKind.SPECIAL,
        0,
        0,
        TokenKind.TAG,
        TokenKind.TAG,
        TokenKind.SPECIAL,
        TokenKind.REGION,
        0,
        TokenKind.REGION,
    ]


def test_who_sees_whom_is_what_the_paper_says() -> None:
    caption, context = torch.tensor([[True, True, True, False]]), torch.tensor([[True, False, True]])
    mask = attention_mask(caption, context)[0].int().tolist()
    assert mask[0] == [1, 0, 0, 0, 1, 0, 1]
    assert mask[2] == [1, 1, 1, 0, 1, 0, 1]
    assert mask[4] == mask[6] == [0, 0, 0, 0, 1, 0, 1]
    twinned = twinned_mask(caption, context)[0].int().tolist()
    assert twinned[0] == [1, 0, 0, 0, 0, 0, 0, 1, 0, 1]
    # The twin of the second place sees the first, itself, tags and regions.
    assert twinned[4] == [1, 0, 0, 0, 1, 0, 0, 1, 0, 1]
    assert twinned[5] == [1, 1, 0, 0, 0, 1, 0, 1, 0, 1]
    assert twinned[7] == [0, 0, 0, 0, 0, 0, 0, 1, 0, 1]
    assert additive(attention_mask(caption, context))[0, 0, 0].tolist()[:2] == [0, -torch.inf]


def test_no_place_is_blind_even_of_images_without_anything() -> None:
    model = small.network()
    batch = model.reader.batch(small.images(), TEXTS, OBJECT)
    mask = attention_mask(batch.there, batch.context.there)
    assert mask.any(dim=2).all()
    assert all_scores(model, batch).isfinite().all()


def test_a_word_changes_nothing_before_it_and_nothing_of_the_image() -> None:
    model = small.network()
    seen = [small.image()]
    first, second = (model.attend(seen, [text]) for text in ("a cup and a dog", "a cup and a bed"))
    changed = ((first.states - second.states).abs().amax(dim=-1)[0] > 1e-6).tolist()
    # [CLS] a cup and a | dog [SEP] | tags and regions
    assert changed[:5] == [False] * 5
    assert changed[5:7] == [True, True]
    assert not any(changed[7:])


@pytest.mark.parametrize("part", ["tags", "regions"])
def test_the_caption_sees_tags_and_regions(part: str) -> None:
    model = small.network()
    seen = small.image()
    whole, less = (model.attend([one], ["a dog"]).states for one in (seen, seen.without(**{part: [0]})))
    assert (whole - less)[0, :4].abs().amax(dim=-1).min() > 1e-4


def test_what_is_out_of_sight_cannot_be_seen() -> None:
    model = small.network()
    images = [small.image(0, 3, ["cup", "dog"]), small.image(1, 3, ["cup", "bed"])]
    # Other features and another name, but only of what is out of sight.
    hidden = [one.without(tags=[1], regions=[0, 1, 2]) for one in images]
    states = [model.attend([one], ["a dog"]).states for one in hidden]
    assert torch.equal(*states)


def test_batches_cut_to_what_is_there_say_what_full_ones_say() -> None:
    model = small.network()
    trimmed, full = (model.reader.batch(small.images(), TEXTS, OBJECT, full=full) for full in (False, True))
    assert full.captions.shape[1] == 40
    assert full.context.there.shape[1] == 30 + 50
    a, b = all_scores(model, trimmed), all_scores(model, full)[:, : trimmed.captions.shape[1]]
    torch.testing.assert_close(a, b, atol=1e-5, rtol=0)
    with torch.no_grad():
        a, b = model.every_word(trimmed), model.every_word(full)[:, : trimmed.captions.shape[1] - 1]
    torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


def test_an_image_says_the_same_alone_and_among_others() -> None:
    model = small.network()
    together = all_scores(model, model.reader.batch(small.images(), TEXTS, OBJECT))
    for i, (seen, text) in enumerate(zip(small.images(), TEXTS, strict=True)):
        alone = all_scores(model, model.reader.batch([seen], [text], ["object"]))[0]
        torch.testing.assert_close(together[i, : len(alone)], alone, atol=1e-5, rtol=0)


def test_attention_written_out_gives_the_states_of_the_fast_way() -> None:
    model = small.network()
    attended = model.attend(small.images(), TEXTS)
    batch = model.reader.batch(small.images(), TEXTS, OBJECT)
    with torch.no_grad():
        slow = model.say(attended.states[:, : batch.captions.shape[1]])
    torch.testing.assert_close(slow[batch.there], all_scores(model, batch)[batch.there], atol=1e-5, rtol=0)


def test_every_word_at_once_is_each_word_behind_its_own_mask() -> None:
    model = small.network()
    batch = model.reader.batch(small.images(), TEXTS, OBJECT)
    with torch.no_grad():
        every = model.every_word(batch)
        for place in range(1, batch.captions.shape[1]):
            rows = batch.lengths > place
            hidden = batch.captions.clone()
            hidden[:, place] = model.coding.mask_id
            # What comes after a [MASK] is never seen by it, so the words there do not matter.
            one = replace(batch, captions=hidden)
            wanted = model(one, torch.where(rows, place, 0)[:, None])[:, 0]
            torch.testing.assert_close(every[rows, place - 1], wanted[rows], atol=1e-5, rtol=0)


def test_attention_sums_to_one_over_what_is_there_and_padding_is_nothing() -> None:
    model = small.network()
    attended = model.attend(small.images(), TEXTS)
    there = attended.parts != TokenKind.PAD
    assert len(attended) == 6
    assert len(attended.layers) == 3
    for layer in attended.layers:
        assert layer.shape == (6, 2, there.shape[1], there.shape[1])
        sums = layer.sum(dim=-1)
        torch.testing.assert_close(sums, there[:, None].expand_as(sums).float())
        assert (layer * ~there[:, None, None]).abs().max() == 0
    assert (attended.states * ~there[:, :, None]).abs().max() == 0
    assert (attended.index[~there] == -1).all()


def test_without_captions_there_are_cls_tags_their_end_and_regions() -> None:
    attended = small.network().attend([small.image(0, 2, ["palm tree", "cup"]), small.image(1, 0, 0)])
    special, tag, region = TokenKind.SPECIAL, TokenKind.TAG, TokenKind.REGION
    assert attended.parts[0].tolist() == [special, tag, tag, tag, special, region, region]
    assert attended.parts[1].tolist() == [special, special, 0, 0, 0, 0, 0]
    assert attended.index[0].tolist() == [-1, 0, 0, 1, -1, 0, 1]


def test_attending_to_no_image_gives_nothing_and_leaves_no_trace() -> None:
    model = small.network().train()
    attended = model.attend([])
    assert [layer.shape[0] for layer in attended.layers] == [0] * 3
    assert attended.states.shape[0] == len(attended) == 0
    assert model.training
    assert not model.attend([small.image()]).states.requires_grad


def test_the_level_that_is_asked_for_changes_the_caption_and_not_the_image() -> None:
    model = small.shaken(small.network(levels=("object", "scene")))
    a, b = (model.attend([small.image()], ["a dog"], level) for level in ("object", "scene"))
    changed = ((a.states - b.states).abs().amax(dim=-1)[0] > 1e-4).tolist()
    assert changed == [True] * 4 + [False] * 8
    assert torch.equal(model.attend([small.image()], ["a dog"]).states, a.states)


def test_new_levels_are_alike_at_first() -> None:
    model = Oscar.fresh(small.network(levels=("object", "scene")).config, small.VOCABULARY, 0)
    a, b = (model.attend([small.image()], ["a dog"], level).states for level in ("object", "scene"))
    assert torch.equal(a, b)


def test_the_same_seed_gives_the_same_network_and_leaves_the_global_one_alone() -> None:
    config = small.network().config
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = (Oscar.fresh(config, small.VOCABULARY, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.words.weight, again.words.weight)
    assert not torch.equal(first.words.weight, other.words.weight)


def test_what_does_not_fit_is_refused() -> None:
    model = small.network()
    with pytest.raises(InvalidValue, match="image 1: has features of size 4, but the network reads 6"):
        model.attend([small.image(), small.image(size=4)])
    with pytest.raises(InvalidValue, match="there are 1 for 2 images"):
        model.attend([small.image(), small.image()], ["a dog"])
    with pytest.raises(UnknownName, match="unknown caption level 'scen'"):
        model.attend([small.image()], level="scen")
    with pytest.raises(InvalidValue, match="vocabulary"):
        Oscar.fresh(replace(model.config, words=7), small.VOCABULARY, 0)
    with pytest.raises(InvalidValue, match="room for 7"):
        Oscar(replace(model.config, words=7), OwnWords(small.VOCABULARY))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"width": 10, "heads": 3}, "3 heads"),
        ({"width": 0}, "width"),
        ({"layers": 1.5}, "whole number"),
        ({"heads": True}, "whole number"),
        ({"dropout": 1.0}, "dropout"),
        ({"levels": ()}, "levels"),
        ({"levels": "object"}, "levels"),
        ({"levels": ("a", "a")}, "twice"),
        ({"text_slots": 40}, "text_slots"),
        ({"max_words": 40}, "max_words"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        OscarConfig(20, **changes)  # type: ignore[arg-type]


def test_the_defaults_are_those_of_bert_base() -> None:
    config = OscarConfig(30522)
    assert (config.width, config.layers, config.heads, config.feed_forward) == (768, 12, 12, 3072)
    assert (config.caption_slots, config.text_slots, config.most_regions, config.max_words) == (40, 70, 50, 20)
    assert OscarConfig.from_dict(config.to_dict()) == config
    with pytest.raises(UnknownName, match="'widht'"):
        OscarConfig.from_dict({"words": 3, "widht": 4})
    with pytest.raises(InvalidValue, match="does not say"):
        OscarConfig.from_dict({"words": 3})


def test_a_reader_knows_unknown_words() -> None:
    model = small.network()
    words = model.coding
    assert isinstance(words, OwnWords)
    assert words.size == len(small.VOCABULARY) + MARKERS == model.config.words
    assert words.encode("A zebra") == (words.encode("a")[0], small.VOCABULARY.unknown_id)
    assert small.VOCABULARY.unknown_id in words.never_generated
    context = Reader(model.config, words).context([small.image(0, 1, ["zebra crossing"])])
    assert isinstance(context, Context)
    assert context.tags[0, :2].tolist() == [small.VOCABULARY.unknown_id] * 2
