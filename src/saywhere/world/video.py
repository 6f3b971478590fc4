"""Short videos: scenes in which things move, and narrators who tell actor by actor, pointing at key frames."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.world.chance import between, pick, shuffled, stream
from saywhere.world.kinds import KINDS
from saywhere.world.layout import Layout, PlacedThing
from saywhere.world.making import make_layout
from saywhere.world.paint import paint
from saywhere.world.scene import Scene

SECONDS_PER_FRAME = 0.5
_LONGEST_WAY = 0.7
_MOST_MOVERS = 3
_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class Motion:
    """How one thing moves. identity: of the thing. velocity_xy: fractions of the picture a second."""

    identity: int
    velocity_xy: tuple[float, float]

    @property
    def direction(self) -> str:
        """ "left" or "right"."""
        return "left" if self.velocity_xy[0] < 0 else "right"


@dataclass(frozen=True, slots=True, eq=False)
class Video:
    """Frames of one place, half a second apart; each is a scene with its full truth.

    A thing keeps its `identity` through all frames, whatever its index in a frame is.
    """

    index: int
    place: str
    frames: tuple[Scene, ...]
    motions: tuple[Motion, ...]

    @property
    def video_id(self) -> str:
        return f"world_{self.index:06d}"

    @property
    def keyframe_names(self) -> tuple[str, ...]:
        return tuple(f"img_{k:07d}" for k in range(len(self.frames)))

    def find(self, frame: int, identity: int) -> int | None:
        """Index of the thing in that frame; None while it is out of sight."""
        for i, thing in enumerate(self.frames[frame].things):
            if thing.identity == identity:
                return i
        return None


def make_video(seed: int, index: int = 0, size: int = 128, frames: int = 10, place: str | None = None) -> Video:
    """Video number `index` of the world `seed`. At least one thing moves."""
    if frames < 2:
        raise InvalidValue("frames", f"is {frames}: a video has at least 2")
    for attempt in range(_ATTEMPTS):
        # Scenes of videos are numbered apart from the pictures, so that no video starts as one of these.
        layout = make_layout(seed, 2**40 + index * _ATTEMPTS + attempt, place)
        movers = [i for i, item in enumerate(layout.items) if KINDS[item.kind].speed > 0 and item.on is None]
        if any(layout.items[i].kind != "cloud" for i in movers):
            return _moved(stream(seed, index, "video"), layout, movers, index, size, frames)
    raise InvalidValue("place", f"{place!r} has nothing that moves in {_ATTEMPTS} attempts")


def _moved(rng: np.random.Generator, layout: Layout, movers: list[int], index: int, size: int, frames: int) -> Video:
    ranked = sorted(shuffled(rng, movers), key=lambda i: layout.items[i].kind == "cloud")
    chosen = ranked[: pick(rng, (1, 2, 2, _MOST_MOVERS))]
    duration_s = (frames - 1) * SECONDS_PER_FRAME
    motions = {i: _motion(rng, layout.items[i], i, duration_s) for i in chosen}
    painted = []
    for k in range(frames):
        since_middle_s = k * SECONDS_PER_FRAME - duration_s / 2
        items = tuple(
            _at(item, motions[i], since_middle_s) if i in motions else item for i, item in enumerate(layout.items)
        )
        painted.append(paint(replace(layout, items=items), index, size))
    return Video(index, layout.place, tuple(painted), tuple(motions[i] for i in sorted(motions)))


def _motion(rng: np.random.Generator, item: PlacedThing, identity: int, duration_s: float) -> Motion:
    speed = min(KINDS[item.kind].speed * item.width * between(rng, 0.7, 1.3), _LONGEST_WAY / duration_s)
    # Vehicles and animals are drawn facing left; skiers, drawn facing right, go downhill.
    if item.kind == "skier":
        rightward = not item.mirrored
        return Motion(identity, (speed if rightward else -speed, 0.35 * speed))
    return Motion(identity, (speed if item.mirrored else -speed, 0.0))


def _at(item: PlacedThing, motion: Motion, seconds: float) -> PlacedThing:
    pose = "walking" if item.pose in ("standing", "waving") else item.pose
    dx, dy = (v * seconds for v in motion.velocity_xy)
    return replace(item, x=item.x + dx, y=item.y + dy, pose=pose)
