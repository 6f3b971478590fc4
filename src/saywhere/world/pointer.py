"""The pointer: a hand that follows the words as hands do, with lag, overshoot, jitter, pauses, circles and gaps.

The constants were fitted to real mouse traces by bench/fit_pointer.py; each says from which source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.core.trace import Trace
from saywhere.core.types import Floats, minimum_jerk
from saywhere.world.chance import between
from saywhere.world.scene import Scene

RATE_HZ = 60.0
"""Median interval of the raw Localized Narratives and Video Localized Narratives records: 17 ms."""

JITTER = 0.00067
"""Standard deviation in widths. OSIE: second differences while dwelling, less the rounding to pixels."""

DWELL_SPEED = 0.15
"""Widths a second while the hand rests on something. OSIE: median step while dwelling, at an assumed 60 Hz."""

WANDER = 0.0062
"""Widths: how far from its middle a resting hand strays. OSIE: median over dwells."""

RUN_SPEED = (0.33, 1.68)
"""Widths a second while drawing: the medians of the video narratives and of the image narrative. A narrator's own
speed lies between them, evenly in the logarithm."""

MOVE_S, MOVE_POWER = 0.29, 0.19
"""Seconds to move by d widths: MOVE_S · d ** MOVE_POWER. Timed records: movements between two slow moments."""

OVERSHOOT_SHARE, OVERSHOOT = 0.063, 0.052
"""How many movements go too far, and by what share of the way. OSIE: jumps of over 40 pixels that turn back."""

GAP_S, GAP_SPREAD = 0.8, 0.71
"""Pen-up gaps: median, and standard deviation of the logarithm. Video narratives: 130 gaps."""

LAG_S, LAG_SPREAD_S = 0.17, 0.45
"""How much later than its noun a stroke starts: mean and spread. Video narratives: strokes within 1.5 s of a noun.
Their spread is 0.72 s, but strokes are paired with nouns by nearness alone; the true one is smaller, taken as 0.45."""

_SHORTEST_MOVE_S = 0.1
_SHORTEST_STAY_S = 0.18
_LEAVING_S = 0.25
_LONGEST_AFTER_S = 2.0
_REST_HZ = 15.0  # A resting hand moves the pointer only now and then, and only then is there an event.
_FINEST = 10_000  # Positions are kept to four decimals, as in Localized Narratives.


@dataclass(frozen=True, slots=True)
class Habits:
    """How one narrator points. lag_s: mean. lifts, circles, skips: shares. run_speed: widths a second."""

    lag_s: float
    run_speed: float
    lifts: float
    circles: float
    skips: float
    unsteadiness: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Habits:
        low, high = np.log(RUN_SPEED)
        return cls(
            lag_s=LAG_S + 0.15 * float(rng.standard_normal()),
            run_speed=float(np.exp(between(rng, low, high))),
            lifts=between(rng, 0.0, 0.7) if rng.random() < 0.6 else 0.0,
            circles=between(rng, 0.3, 0.85),
            skips=between(rng, 0.0, 0.12),
            unsteadiness=between(rng, 0.6, 1.6),
        )


@dataclass(frozen=True, slots=True)
class Mention:
    """While these words were said, the speaker meant these things. view: in which of the pictures shown."""

    start_s: float
    end_s: float
    things: tuple[int, ...]
    view: int = 0


@dataclass(frozen=True, slots=True)
class _Target:
    thing: int
    view: int
    start_s: float
    end_s: float


class _Hand:
    """A pen that is put down, moved and lifted. strokes: key points (n, 3) in pieces; views: of each stroke."""

    def __init__(self) -> None:
        self.strokes: list[list[Floats]] = []
        self.views: list[int] = []

    @property
    def here(self) -> Floats:
        """(3,) the last point."""
        last: Floats = self.strokes[-1][-1][-1]
        return last

    def put_down(self, xy: Floats, at_s: float, view: int) -> None:
        self.strokes.append([np.array([[xy[0], xy[1], at_s]])])
        self.views.append(view)

    def draw(self, points: Floats) -> None:
        self.strokes[-1].append(points)


def point(rng: np.random.Generator, habits: Habits, scene: Scene, mentions: Sequence[Mention]) -> Trace:
    """The trace of a narrator who mentions these things at these times."""
    return Trace.from_segments([stroke for _, stroke in point_at(rng, habits, [scene], mentions)])


def point_at(
    rng: np.random.Generator, habits: Habits, views: Sequence[Scene], mentions: Sequence[Mention]
) -> list[tuple[int, Floats]]:
    """Strokes (n, 3), each with the number of the picture that it lies on: between two pictures the pen is lifted."""
    hand = _Hand()
    targets = _targets(rng, habits, mentions)
    for k, target in enumerate(targets):
        # Most people go on drawing until it is time to leave for the next thing.
        leave_s = targets[k + 1].start_s - _LEAVING_S if k + 1 < len(targets) else target.end_s
        stay_s = min(leave_s, target.end_s + between(rng, 0.0, _LONGEST_AFTER_S)) - target.start_s
        gesture = _gesture(rng, habits, views[target.view], target.thing, max(_SHORTEST_STAY_S, stay_s))
        _reach(rng, habits, hand, gesture[0, :2], target)
        hand.draw(gesture + np.array([0.0, 0.0, max(target.start_s, float(hand.here[2])) + 1 / RATE_HZ]))
    return list(zip(hand.views, _sampled(rng, habits, hand.strokes), strict=True))


def _targets(rng: np.random.Generator, habits: Habits, mentions: Sequence[Mention]) -> list[_Target]:
    """Where to be when. Several things of one mention are visited one after the other."""
    targets: list[_Target] = []
    earliest = 0.05
    for mention in mentions:
        if rng.random() < habits.skips:
            continue
        lag = float(np.clip(habits.lag_s + LAG_SPREAD_S * rng.standard_normal(), -0.8, 1.0))
        n = len(mention.things)
        start = max(earliest + _SHORTEST_MOVE_S, mention.start_s + lag)
        stay = max(_SHORTEST_STAY_S, (mention.end_s + lag - start) / n)
        for i, thing in enumerate(mention.things):
            arrival = start + i * (stay + _SHORTEST_MOVE_S)
            targets.append(_Target(thing, mention.view, arrival, arrival + stay))
        earliest = targets[-1].end_s
    return targets


def _reach(rng: np.random.Generator, habits: Habits, hand: _Hand, goal: Floats, target: _Target) -> None:
    """Get to the goal by a time: rest first if there is time, lift the pen now and then, overshoot at times."""
    if not hand.strokes:
        hand.put_down(goal, target.start_s, target.view)
        return
    here = hand.here
    distance = float(np.hypot(*(goal - here[:2])))
    moving_s = max(_SHORTEST_MOVE_S, MOVE_S * distance**MOVE_POWER)
    left_s = target.start_s - float(here[2])
    lifts = target.view != hand.views[-1] or (rng.random() < habits.lifts and left_s > _SHORTEST_STAY_S)
    away_s = GAP_S * float(np.exp(GAP_SPREAD * rng.standard_normal())) if lifts else moving_s
    if left_s - away_s > _SHORTEST_STAY_S:
        hand.draw(_rest(rng, here, left_s - away_s))
        here = hand.here
    if lifts:
        hand.put_down(goal, max(target.start_s, float(here[2])), target.view)
    else:
        moving_s = min(moving_s, max(_SHORTEST_MOVE_S / 2, target.start_s - float(here[2])))
        hand.draw(_move(rng, here, goal - here[:2], moving_s))


def _move(rng: np.random.Generator, here: Floats, way: Floats, seconds: float) -> Floats:
    steps = max(2, round(seconds * RATE_HZ))
    u = np.arange(1, steps + 1) / steps
    along = minimum_jerk(u)
    if rng.random() < OVERSHOOT_SHARE:
        # Too far by a share of the way, then back: the hand reaches its farthest at four fifths of the time.
        along = np.where(
            u < 0.8, (1 + OVERSHOOT) * minimum_jerk(u / 0.8), 1 + OVERSHOOT * (1 - minimum_jerk((u - 0.8) / 0.2))
        )
    # Hands move on slight arcs, not on rulers' lines.
    bow = 0.06 * float(rng.standard_normal()) * np.sin(np.pi * u)
    side = np.array([-way[1], way[0]])
    xy = here[:2] + along[:, None] * way + bow[:, None] * side
    return np.column_stack([xy, here[2] + u * seconds])


def _rest(rng: np.random.Generator, here: Floats, seconds: float) -> Floats:
    """Stay, and drift a little: slowly, and never far."""
    knots = max(2, round(seconds * 4))
    angle = np.cumsum(rng.normal(0.0, 0.9, knots))
    step = min(DWELL_SPEED * seconds / knots, WANDER)
    ends = here[:2] + np.cumsum(np.column_stack([np.cos(angle), np.sin(angle)]) * step, axis=0)
    times = here[2] + np.linspace(0, seconds, knots + 1)
    wanted = here[2] + np.sort(rng.random(max(1, round(seconds * _REST_HZ)))) * seconds
    columns = [np.interp(wanted, times, np.concatenate([here[axis : axis + 1], ends[:, axis]])) for axis in (0, 1)]
    return np.column_stack([*columns, wanted])


def _gesture(rng: np.random.Generator, habits: Habits, scene: Scene, thing: int, seconds: float) -> Floats:
    """(n, 3) what the hand does on the thing, times from 0: circle round it, stroke along it, or hold on it."""
    n = max(3, round(seconds * RATE_HZ))
    u = _uneven(rng, n)
    x1, y1, x2, y2 = scene.things[thing].box_xyxy
    half = np.array([x2 - x1, y2 - y1]) / 2
    middle = np.array([x1 + x2, y1 + y2]) / 2 + half * rng.normal(0.0, 0.12, 2)
    length = habits.run_speed * seconds
    kind = rng.random()
    if scene.things[thing].stuff:
        xy = _stroke_through(rng, scene, thing, u, length)
    elif kind < habits.circles:
        radii = half * (0.8 + 0.3 * float(rng.random()))
        # A circle that cannot be finished in time is drawn smaller, but not tiny, and then only in part.
        around = 2 * np.pi * float(np.sqrt((radii**2).mean()))
        radii = radii * max(0.45, min(1.0, length / (0.9 * around)))
        turns = min(3.5, max(0.5, length / (2 * np.pi * max(0.01, float(np.sqrt((radii**2).mean()))))))
        turn = 2 * np.pi * (float(rng.random()) + turns * u * (1 if rng.random() < 0.7 else -1))
        xy = middle + radii * np.column_stack([np.cos(turn), np.sin(turn)])
    else:
        reach = min(1.0, length / max(0.02, 2 * float(np.hypot(*half))))
        axis = (
            half * np.array([1.0, 0.3 * rng.standard_normal()])
            if half[0] > half[1]
            else half * np.array([0.3 * rng.standard_normal(), 1.0])
        )
        strokes = 1 if rng.random() < 0.7 else 2
        xy = middle - axis * reach * 0.8 * np.cos(np.pi * strokes * u)[:, None]
    return np.column_stack([xy, np.arange(n) / n * seconds])


def _stroke_through(rng: np.random.Generator, scene: Scene, thing: int, u: Floats, length: float) -> Floats:
    """A wavy line over what is seen of sky, sea or ground, from one visible place to another."""
    rows, cols = np.nonzero(scene.mask(thing))
    ends = rng.integers(0, len(rows), 2)
    a, b = ((np.array([cols[k] + 0.5, rows[k] + 0.5]) / scene.size) for k in ends)
    way = b - a
    distance = max(0.02, float(np.hypot(*way)))
    way = way * min(1.0, length / distance)
    wave = 0.02 * np.sin(2 * np.pi * (1.5 * u + rng.random()))
    line: Floats = a + u[:, None] * way + np.column_stack([np.zeros_like(u), wave])
    return line


def _uneven(rng: np.random.Generator, n: int) -> Floats:
    """(n,) from 0 to 1: progress at a speed that swells and ebbs."""
    knots = np.exp(0.45 * rng.standard_normal(5))
    speed = np.interp(np.linspace(0, 4, n), range(5), knots)
    way = np.cumsum(speed) - speed[0]
    progress: Floats = way / max(1e-9, float(way[-1]))
    return progress


def _sampled(rng: np.random.Generator, habits: Habits, strokes: Sequence[Sequence[Floats]]) -> list[Floats]:
    """As a browser reports it: with jitter, milliseconds, four decimals, and silence while nothing moves."""
    segments = []
    latest = 0.0
    for parts in strokes:
        points = np.concatenate(list(parts))
        xy = points[:, :2] + JITTER * habits.unsteadiness * rng.standard_normal((len(points), 2))
        xy = np.round(xy * _FINEST) / _FINEST
        times = np.maximum.accumulate(np.maximum(latest, np.round(points[:, 2], 3)))
        moved = np.ones(len(points), dtype=bool)
        moved[1:] = (np.abs(np.diff(xy, axis=0)) > 2 / _FINEST).any(axis=1)
        segments.append(np.column_stack([xy, times])[moved])
        latest = float(times[-1])
    return segments
