"""The whole laboratory on a small Oscar, with images of all kinds: no tag, no region, neither, all out of sight."""

from __future__ import annotations

import numpy as np

from saywhere.explain import (
    attend_rounds,
    attention_matrix,
    compared,
    diagnosticity,
    measure_blocks,
    measure_objects,
    pooled_many,
    removal,
    removed,
    special_attention,
    write_many,
)
from saywhere.models.attended import TokenKind
from saywhere.models.search import GenerationConfig
from tests.models import oscar_small

IMAGES = {str(i): one for i, one in enumerate(oscar_small.images())}
IDS = list(IMAGES)


def test_blocks_are_there_where_their_parts_are() -> None:
    found = measure_blocks(oscar_small.network(), IDS, IMAGES.__getitem__, batch=4)
    assert found["vision→vision"].rows.tolist() == [4, 2, 0, 0, 0, 3]
    assert np.isnan(found["vision→tag"].mass).tolist() == [False, True, True, True, True, False]
    assert found["all the relations"].empty == 3
    whole = measure_blocks(oscar_small.network(), ["0"], IMAGES.__getitem__, heads="mean", batch=1)
    # What a region gives to regions and tags is all it gives but what [CLS] and [SEP] get.
    given = whole["vision→vision"].mass + whole["vision→tag"].mass
    assert 0 < given[0] < 4


def test_every_row_is_told_in_a_picture_and_separators_have_their_share() -> None:
    (some,) = attend_rounds(oscar_small.network(), IDS, IMAGES.__getitem__)
    drawn = attention_matrix(some.attended, 5, IMAGES["5"])
    kinds = [span.part for span in drawn.spans]
    assert kinds == [TokenKind.SPECIAL, TokenKind.TAG, TokenKind.SPECIAL, TokenKind.REGION]
    assert drawn.labels[0] == "[CLS]"
    assert set(drawn.labels[drawn.spans[1].start : drawn.spans[1].stop]) <= set(IMAGES["5"].tags)
    assert drawn.labels[-3:] == ("1", "2", "4")
    share = special_attention(some.attended, askers=(TokenKind.REGION,))
    assert np.isfinite(share.share[:, 0, 0]).tolist() == [True, True, False, False, False, True]
    assert (share.mean > 0).all()


def test_diagnostic_objects_and_states_and_captions_are_had_of_every_image() -> None:
    model = oscar_small.network()
    looked = measure_objects(model, IDS, IMAGES.__getitem__)
    found = diagnosticity(looked, ["sea", "sea", "road", "road", "road", None], np.random.default_rng(0), shuffles=3)
    assert {row.scene: row.images for row in found.scenes} == {"sea": 2, "road": 3}
    states = pooled_many(model, IDS, IMAGES.__getitem__)
    assert np.isfinite(states).all()
    inputs = pooled_many(model, IDS, IMAGES.__getitem__, over="inputs")
    assert np.isfinite(inputs).all(axis=1).tolist() == [True, True, True, False, False, True]
    how = GenerationConfig("greedy", max_words=4)
    before = write_many(model, IDS, IMAGES.__getitem__, how=how, batch=4)
    gone = {"0": removal(IMAGES["0"], IMAGES["0"].tags)}
    after = write_many(model, IDS, removed(IMAGES.__getitem__, gone), how=how)
    pairs = {pair.id: pair for pair in compared(before, after).pairs}
    assert list(pairs) == IDS
    assert all(0 < pair.confidence_after <= 1 for pair in pairs.values())
    assert not any(pair.changed for name, pair in pairs.items() if name != "0")
