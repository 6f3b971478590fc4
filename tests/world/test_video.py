"""Videos: things that move as told, and narrators who point at key frames."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from saywhere.core.errors import InvalidValue
from saywhere.world import KINDS, Video, VideoNarration, make_video, narrate_video
from saywhere.world.layout import Layout
from saywhere.world.making import make_layout


@pytest.fixture(scope="module")
def some() -> list[tuple[Video, VideoNarration]]:
    videos = [make_video(4, index, size=48, frames=8) for index in range(12)]
    return [(video, narrate_video(video, 4)) for video in videos]


def test_something_moves_and_the_rest_stays(some: list[tuple[Video, VideoNarration]]) -> None:
    for video, _ in some:
        assert len(video.frames) == 8
        assert video.motions
        moving = {m.identity for m in video.motions}
        for motion in video.motions:
            xs = [
                (k, video.frames[k].things[i].centre[0])
                for k in range(8)
                if (i := video.find(k, motion.identity)) is not None and video.frames[k].things[i].visible > 0.95
            ]
            if len(xs) >= 3 and KINDS[_kind(video, motion.identity)].speed > 0.1:
                steps = np.diff([x for _, x in xs])
                assert (steps <= 0.011).all() if motion.direction == "left" else (steps >= -0.011).all()
        first, last = ({t.identity: t for t in video.frames[k].things} for k in (0, -1))
        for identity in set(first) & set(last) - moving:
            if first[identity].visible == last[identity].visible == 1.0 and not first[identity].stuff:
                assert first[identity].box_xyxy == last[identity].box_xyxy


def _kind(video: Video, identity: int) -> str:
    return next(t.kind for frame in video.frames for t in frame.things if t.identity == identity)


def _layout(seed: int, video: Video) -> Layout:
    """The layout from which the video was made: the first of its attempts in which something moves."""
    first = 2**40 + video.index * 50
    layouts = (make_layout(seed, first + k, video.place) for k in range(50))
    return next(
        layout
        for layout in layouts
        if any(KINDS[i.kind].speed > 0 and i.on is None and i.kind != "cloud" for i in layout.items)
    )


def test_an_identity_is_the_same_thing_in_all_frames(some: list[tuple[Video, VideoNarration]]) -> None:
    for video, _ in some:
        looks: dict[int, set[tuple[str, str]]] = {}
        for frame in video.frames:
            for thing in frame.things:
                looks.setdefault(thing.identity, set()).add((thing.kind, thing.colour))
        assert all(len(look) == 1 for look in looks.values())


def test_narrators_tell_each_mover_and_the_background(some: list[tuple[Video, VideoNarration]]) -> None:
    for video, narration in some:
        assert narration.actors[-1].name == "background"
        assert narration.keyframe_names == video.keyframe_names
        kinds = {_kind(video, motion.identity) for motion in video.motions}
        assert {actor.name for actor in narration.actors[:-1]} <= kinds


def test_the_told_direction_is_the_true_one(some: list[tuple[Video, VideoNarration]]) -> None:
    checked = 0
    for video, narration in some:
        directions = {motion.identity: motion.direction for motion in video.motions}
        for actor in narration.actors[:-1]:
            identity = actor.word_identities[0][0]
            words = actor.narrative.caption.rstrip(".").split()
            sides = [word for word in words if word in ("left", "right")]
            assert sides[-1] == directions[identity]
            checked += 1
    assert checked >= 12


def test_every_point_lies_on_a_chosen_key_frame_and_strokes_on_one(some: list[tuple[Video, VideoNarration]]) -> None:
    for _, narration in some:
        for actor in narration.actors:
            assert len(actor.keyframes) == len(actor.narrative.trace)
            assert set(actor.keyframes) <= set(actor.chosen_keyframes)
            starts = (*actor.narrative.trace.starts, len(actor.keyframes))
            for a, b in pairwise(starts):
                assert len(set(actor.keyframes[a:b])) == 1


def test_points_on_the_actor_are_near_it(some: list[tuple[Video, VideoNarration]]) -> None:
    near = []
    for video, narration in some:
        for actor in narration.actors[:-1]:
            identity = actor.word_identities[0][0]
            for (x, y, _), frame in zip(actor.narrative.trace.points.tolist(), actor.keyframes, strict=True):
                index = video.find(frame, identity)
                if index is not None and frame != actor.chosen_keyframes[0]:
                    x1, y1, x2, y2 = video.frames[frame].things[index].box_xyxy
                    near.append(x1 - 0.05 < x < x2 + 0.05 and y1 - 0.05 < y < y2 + 0.05)
    assert np.mean(near) > 0.9


def test_words_and_nouns_are_found_in_the_caption(some: list[tuple[Video, VideoNarration]]) -> None:
    for _, narration in some:
        for actor in narration.actors:
            caption = actor.narrative.caption
            said = [caption[a:b] for a, b in actor.word_spans]
            assert said == [u.text.strip(".,") for u in actor.narrative.utterances]
            assert actor.noun_spans
            assert set(actor.noun_spans) <= set(actor.word_spans)


def test_things_go_the_way_they_face() -> None:
    """A bus drawn facing left shows its headlight on the left: its motion must not be backwards."""
    directions = set()
    for index in range(25):
        video = make_video(2, index, size=32, frames=2, place="street")
        for motion in video.motions:
            item = _layout(2, video).items[motion.identity]
            if KINDS[item.kind].group == "vehicle":
                assert motion.direction == ("right" if item.mirrored else "left")
                directions.add(motion.direction)
    assert directions == {"left", "right"}


def test_a_video_is_the_same_by_seed() -> None:
    first, second = (make_video(4, 3, size=32, frames=4) for _ in range(2))
    assert all((a.photo == b.photo).all() for a, b in zip(first.frames, second.frames, strict=True))
    assert narrate_video(first, 1) == narrate_video(second, 1)
    assert narrate_video(first, 1) != narrate_video(first, 2)


def test_what_cannot_be_filmed_is_refused(some: list[tuple[Video, VideoNarration]]) -> None:
    with pytest.raises(InvalidValue, match="at least 2"):
        make_video(0, frames=1)
    with pytest.raises(InvalidValue, match="narrator"):
        narrate_video(some[0][0], narrator=99)
