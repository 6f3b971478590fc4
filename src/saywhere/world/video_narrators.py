"""Narrators of videos: for each actor a caption, spoken while pointing at chosen key frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.narrative import Narrative
from saywhere.core.trace import Trace
from saywhere.core.words import Utterance
from saywhere.world.chance import between, pick, stream
from saywhere.world.english import NOUNS, Token, about, listed, phrase, plain, sentence, written
from saywhere.world.narrators import DATASET_ID, NARRATORS, narrator_habits
from saywhere.world.pointer import Habits, Mention, point_at
from saywhere.world.speech import speak
from saywhere.world.video import Motion, Video

Span = tuple[int, int]

_VERBS = {
    "bird": "flying",
    "kite": "flying",
    "airplane": "flying",
    "cloud": "moving",
    "car": "driving",
    "bus": "driving",
    "truck": "driving",
    "tractor": "driving",
    "train": "moving",
    "sailboat": "sailing",
    "ship": "sailing",
    "duck": "swimming",
    "dog": "running",
    "horse": "running",
    "skier": "skiing",
}
_MOST_KEYFRAMES = 4
_POINTING_S = (0.7, 1.6)


@dataclass(frozen=True, slots=True)
class ActorNarration:
    """What was said about one actor. The fields are those of Video Localized Narratives.

    keyframes: for each point of the trace, the key frame it lies on. chosen_keyframes: those used. word_spans: of each
    utterance in the caption; noun_spans: of its nouns. word_identities: for each utterance, the identities of the
    things that it refers to.
    """

    name: str
    narrative: Narrative
    keyframes: tuple[int, ...]
    chosen_keyframes: tuple[int, ...]
    word_spans: tuple[Span, ...]
    noun_spans: tuple[Span, ...]
    word_identities: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class VideoNarration:
    """All that one narrator told about one video: its moving things, then the background."""

    video_id: str
    keyframe_names: tuple[str, ...]
    actors: tuple[ActorNarration, ...]
    annotator_id: str


def narrate_video(video: Video, seed: int = 0, narrator: int | None = None) -> VideoNarration:
    """Tell what moves, and what is behind it. narrator: 1 … NARRATORS; drawn by chance if not given."""
    if narrator is not None and not 1 <= narrator <= NARRATORS:
        raise InvalidValue("narrator", f"is {narrator}, not 1 to {NARRATORS}")
    rng = stream(seed, video.index, "video", 1)
    drawn = 1 + int(rng.random() * NARRATORS)
    number = narrator if narrator is not None else drawn
    habits = narrator_habits(number)
    actors = []
    for motion in video.motions:
        seen = [k for k in range(len(video.frames)) if _clear(video, k, motion.identity)]
        if seen:
            actors.append(_tell_actor(rng, video, motion, seen, habits, str(number)))
    actors.append(_tell_background(rng, video, habits, str(number)))
    return VideoNarration(video.video_id, video.keyframe_names, tuple(actors), str(number))


def _clear(video: Video, frame: int, identity: int) -> bool:
    index = video.find(frame, identity)
    return index is not None and video.frames[frame].things[index].clear


def _tell_actor(
    rng: np.random.Generator, video: Video, motion: Motion, seen: Sequence[int], habits: Habits, narrator: str
) -> ActorNarration:
    count = min(len(seen), pick(rng, (2, 3, 3, _MOST_KEYFRAMES)))
    chosen = sorted({seen[round(k)] for k in np.linspace(0, len(seen) - 1, count).tolist()})
    frame = chosen[0]
    index = video.find(frame, motion.identity)
    scene = video.frames[frame]
    if index is None:
        raise InvalidValue("key frame", f"{frame} does not show thing {motion.identity}")
    thing = scene.things[index]
    opposite = "right" if motion.direction == "left" else "left"
    way = pick(
        rng, (f"to the {motion.direction}", f"from {opposite} to {motion.direction}", f"towards the {motion.direction}")
    )
    verb = thing.pose if thing.pose in ("walking", "skiing") else _VERBS.get(thing.kind, "walking")
    tokens = [*phrase(rng, scene, index, colour=0.8), *plain(f"is {verb} {way}")]
    if thing.on is not None and scene.things[thing.on].kind not in ("hill", "roof", "skyline"):
        support = scene.things[thing.on]
        tokens += [*plain("in" if support.kind == "sky" else "on"), *about(f"the {support.kind}", thing.on)]
    return _spoken(rng, video, thing.kind, sentence(tokens), chosen, motion.identity, habits, narrator)


def _tell_background(rng: np.random.Generator, video: Video, habits: Habits, narrator: str) -> ActorNarration:
    frame = int(rng.random() * len(video.frames))
    scene = video.frames[frame]
    moving = {motion.identity for motion in video.motions}
    still = [i for i, t in enumerate(scene.things) if t.identity not in moving and t.clear and t.depth > 0.5]
    spoken = sorted(still, key=lambda i: -scene.things[i].area)[: pick(rng, (2, 3, 4))]
    names = listed([phrase(rng, scene, i, colour=0.5) for i in spoken])
    tokens = (
        sentence([*plain("in the background there is"), *names]) if spoken else sentence(plain("there is nothing else"))
    )
    return _spoken(rng, video, "background", tokens, [frame], None, habits, narrator)


def _spoken(
    rng: np.random.Generator,
    video: Video,
    name: str,
    tokens: Sequence[Token],
    chosen: Sequence[int],
    actor: int | None,
    habits: Habits,
    narrator: str,
) -> ActorNarration:
    """Words with times, and strokes: on the actor in every chosen frame, on other things in the first one."""
    first = video.frames[chosen[0]]
    times, mentions = _unhurried(rng, video, tokens, chosen, actor)
    strokes = point_at(rng, habits, video.frames, mentions)
    starts = np.cumsum([0, *(len(token.text) + 1 for token in tokens)]).tolist()
    spans = tuple((a, a + len(token.text.strip(".,"))) for a, token in zip(starts, tokens, strict=False))
    utterances = tuple(
        Utterance(token.text, round(a, 2), round(b, 2)) for token, (a, b) in zip(tokens, times, strict=True)
    )
    narrative = Narrative(
        image_id=video.video_id,
        caption=written(tokens),
        utterances=utterances,
        trace=Trace.from_segments([stroke for _, stroke in strokes]),
        dataset_id=DATASET_ID,
        annotator_id=narrator,
        origin=DATASET_ID,
    )
    return ActorNarration(
        name=name,
        narrative=narrative,
        keyframes=tuple(view for view, stroke in strokes for _ in stroke),
        chosen_keyframes=tuple(chosen),
        word_spans=spans,
        noun_spans=tuple(span for span, t in zip(spans, tokens, strict=True) if t.text.strip(".,").lower() in NOUNS),
        word_identities=tuple(tuple(first.things[i].identity for i in token.things) for token in tokens),
    )


def _unhurried(
    rng: np.random.Generator, video: Video, tokens: Sequence[Token], chosen: Sequence[int], actor: int | None
) -> tuple[list[tuple[float, float]], list[Mention]]:
    """Times of the words, with pauses after each phrase long enough to point: as in the real records."""
    first = video.frames[chosen[0]]
    times = speak(rng, [token.text for token in tokens], 1.1)
    shift, shifted, mentions = between(rng, 1.0, 2.5), [], []
    for k, (token, (start_s, end_s)) in enumerate(zip(tokens, times, strict=True)):
        shifted.append((start_s + shift, end_s + shift))
        following = tokens[k + 1].things if k + 1 < len(tokens) else ()
        if not token.things or token.things == following:
            continue
        begin = next(i for i in range(k, -1, -1) if i == 0 or tokens[i - 1].things != token.things)
        at = shifted[begin][0]
        for thing in token.things:
            identity = first.things[thing].identity
            for view in chosen if identity == actor else chosen[:1]:
                index = video.find(view, identity)
                if index is not None:
                    spent = between(rng, *_POINTING_S)
                    mentions.append(Mention(at, at + spent, (index,), view))
                    at += spent + 0.4
        shift += max(0.0, at - (end_s + shift))
    return shifted, mentions
