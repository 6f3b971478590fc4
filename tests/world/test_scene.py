"""Scenes: the same by seed at any size, with masks, boxes and places that agree with the picture."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.world import KINDS, PLACES, STUFF, Scene, make_scene, scenes
from saywhere.world.backdrops import PAINTERS, VARIANTS, backdrop
from saywhere.world.drawings import DRAWINGS
from saywhere.world.kinds import CATEGORIES, MIGHT_BE, SITTING
from saywhere.world.sprites import sprite

SIZE = 64


def _digest(scene: Scene) -> str:
    return hashlib.sha256(scene.photo.tobytes() + scene.labels.tobytes() + repr(scene.things).encode()).hexdigest()


@pytest.fixture(scope="module")
def some() -> list[Scene]:
    return list(scenes(60, seed=3, size=SIZE))


def test_the_world_has_the_places_and_kinds_that_were_asked_for() -> None:
    assert len(PLACES) >= 10
    assert len(KINDS) >= 40
    assert set(PLACES) == set(PAINTERS)
    assert set(KINDS) == set(DRAWINGS)
    assert len(set(CATEGORIES)) == len(KINDS) + len(STUFF)


def test_every_kind_is_at_home_somewhere() -> None:
    at_home = {kind for place in PLACES.values() for slot in place.slots for kind in slot.kinds}
    assert at_home == set(KINDS)


def test_no_slot_waits_for_a_zone_that_no_backdrop_has() -> None:
    for place in PLACES.values():
        known = {zone for v in range(VARIANTS) for zone in backdrop(place.name, v, False, 16).zones}
        for slot in place.slots:
            support = slot.zone.removeprefix("on ")
            assert slot.zone in known or (KINDS[support].surface is not None), (place.name, slot.zone)
            assert sum(slot.chances) == pytest.approx(1)


def test_names_that_might_be_confused_are_names_of_the_world() -> None:
    assert set(MIGHT_BE) <= set(KINDS)
    assert {name for names in MIGHT_BE.values() for name in names} <= set(CATEGORIES)


def test_the_same_number_gives_the_same_bytes_alone_and_among_others(some: list[Scene]) -> None:
    for index in (0, 17, 59):
        assert _digest(make_scene(3, index, SIZE)) == _digest(some[index])


def test_a_later_start_continues_the_same_world(some: list[Scene]) -> None:
    assert [_digest(s) for s in scenes(3, seed=3, size=SIZE, start=40)] == [_digest(s) for s in some[40:43]]


def test_other_numbers_and_other_seeds_give_other_scenes(some: list[Scene]) -> None:
    digests = {_digest(s) for s in some} | {_digest(s) for s in scenes(20, seed=4, size=SIZE)}
    assert len(digests) == 80


@pytest.mark.parametrize("index", range(8))
def test_at_another_size_it_is_the_same_scene(index: int) -> None:
    small, large = make_scene(5, index, 96), make_scene(5, index, 192)
    assert small.place == large.place
    kinds = [[(t.kind, t.colour, t.pose) for t in s.things if t.area > 0.002] for s in (small, large)]
    assert kinds[0] == kinds[1]
    boxes = [np.array([t.box_xyxy for t in s.things if t.area > 0.002]) for s in (small, large)]
    assert np.abs(boxes[0] - boxes[1]).mean() < 0.02


def test_masks_boxes_and_areas_agree_with_each_other(some: list[Scene]) -> None:
    for scene in some[:25]:
        assert scene.photo.shape == (SIZE, SIZE, 3)
        assert scene.photo.dtype == np.uint8
        total = np.zeros((SIZE, SIZE), dtype=int)
        for i, thing in enumerate(scene.things):
            mask = scene.mask(i)
            total += mask
            rows, cols = np.nonzero(mask)
            box = (cols.min() / SIZE, rows.min() / SIZE, (cols.max() + 1) / SIZE, (rows.max() + 1) / SIZE)
            assert thing.box_xyxy == pytest.approx(box)
            assert thing.area == pytest.approx(mask.mean())
        assert (total == 1).all(), "each pixel shows exactly one thing"


def test_the_seen_share_of_a_thing_is_what_others_and_the_edge_leave_of_it(some: list[Scene]) -> None:
    shares = [t.visible for s in some for t in s.things if not t.stuff]
    assert all(0 < share <= 1 for share in shares)
    assert 0.05 < np.mean(np.array(shares) < 0.95) < 0.7, "some things are partly hidden, most are not"


def test_a_scene_cannot_be_changed(some: list[Scene]) -> None:
    with pytest.raises(ValueError, match="read-only"):
        some[0].photo[0, 0] = 0
    with pytest.raises(ValueError, match="read-only"):
        some[0].labels[0, 0] = 0


def test_objects_come_before_stuff_and_supports_exist(some: list[Scene]) -> None:
    for scene in some:
        flags = [t.stuff for t in scene.things]
        assert flags == sorted(flags)
        assert all(t.on is None or 0 <= t.on < len(scene.things) for t in scene.things)
        assert all(t.kind in (STUFF if t.stuff else KINDS) for t in scene.things)


HOMES = {
    "cloud": {"sky"},
    "sun": {"sky"},
    "airplane": {"sky"},
    "sailboat": {"sea"},
    "ship": {"sea"},
    "car": {"road"},
    "bus": {"road"},
    "train": {"tracks"},
    "window": {"wall"},
    "sofa": {"floor"},
    "bed": {"floor"},
    "plate": {"table"},
    "laptop": {"desk", "table", "bed"},
    "pot": {"oven"},
    "tractor": {"soil"},
    "skier": {"snow"},
}


def test_things_are_where_they_belong() -> None:
    found: dict[str, set[str]] = {}
    for scene in scenes(250, seed=9, size=32):
        for thing in scene.things:
            if thing.on is not None:
                found.setdefault(thing.kind, set()).add(scene.things[thing.on].kind)
    assert {kind: found[kind] <= homes for kind, homes in HOMES.items() if kind in found} == {
        kind: True for kind in HOMES if kind in found
    }
    assert len(set(HOMES) & set(found)) >= 14


def test_what_stands_on_a_table_touches_it() -> None:
    checked = 0
    for scene in scenes(60, seed=2, size=SIZE, place="kitchen"):
        for thing in scene.things:
            if thing.on is not None and not scene.things[thing.on].stuff and thing.visible > 0.9:
                x1, y1, x2, y2 = scene.things[thing.on].box_xyxy
                x, bottom = thing.centre[0], thing.box_xyxy[3]
                assert x1 - 0.03 <= x <= x2 + 0.03
                assert y1 - 0.03 <= bottom <= y2 + 0.03
                checked += 1
    assert checked > 60


def test_people_sit_only_on_seats(some: list[Scene]) -> None:
    sitters = [(s, t) for s in scenes(150, seed=8, size=32) for t in s.things if t.pose == SITTING]
    assert sitters
    for scene, thing in sitters:
        assert thing.on is None or KINDS[scene.things[thing.on].kind].seat


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_drawn_in_its_colours(kind: str) -> None:
    for pose in KINDS[kind].poses:
        images = []
        for colour in KINDS[kind].colours:
            drawn = sprite(kind, colour, pose, 0, False, 48)
            assert drawn.image.height == 48
            assert 0.1 * drawn.image.width * 48 < drawn.area
            images.append(np.asarray(drawn.image)[..., :3].astype(float).mean(axis=(0, 1)))
        spread = np.ptp(np.array(images), axis=0).max()
        assert len(images) == 1 or spread > 2, "colours make a difference"


def test_a_mirrored_sprite_is_the_same_seen_in_a_mirror() -> None:
    plain, mirrored = (np.asarray(sprite("car", "red", "", 0, flag, 40).image) for flag in (False, True))
    np.testing.assert_array_equal(plain[:, ::-1], mirrored)


@given(st.integers(0, 2**32), st.integers(0, 2**20), st.sampled_from(sorted(PLACES)))
def test_any_seed_and_number_gives_a_whole_scene(seed: int, index: int, place: str) -> None:
    scene = make_scene(seed, index, 32, place)
    assert scene.place == place
    assert scene.labels.min() >= 1
    assert scene.labels.max() <= len(scene.things)
    assert set(scene.tags) <= set(KINDS)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"seed": -1}, InvalidValue, "seed"),
        ({"seed": 0, "index": -5}, InvalidValue, "index"),
        ({"seed": 0, "size": 4}, InvalidValue, "size"),
        ({"seed": 0, "size": 100_000}, InvalidValue, "size"),
        ({"seed": 0, "place": "kitchn"}, UnknownName, "kitchen"),
    ],
)
def test_what_cannot_be_made_is_refused(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make_scene(**arguments)  # type: ignore[arg-type]


def test_a_negative_count_of_scenes_is_refused() -> None:
    with pytest.raises(InvalidValue, match="n"):
        next(scenes(-1))


def test_a_mask_of_a_thing_that_is_not_there_is_refused(some: list[Scene]) -> None:
    with pytest.raises(InvalidValue, match="things of scene"):
        some[0].mask(99)
