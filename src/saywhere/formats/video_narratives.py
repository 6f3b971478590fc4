"""Video Localized Narratives (Voigtlaender et al., CVPR 2023): one JSON object a line, plain or gzipped.

A record is what one annotator told about one video, actor by actor, pointing at a few key frames. Its keys:

    vidln_id, dataset_id, video_id, annotator_id     which narrative, of which video, by whom
    keyframe_names      the frames that could be chosen, ["img_0000005", …]
    actor_narratives    [{
        actor_name                            "Tiger one"; the last one is usually "background"
        keyframe_selection_indices            key frames chosen for this actor; may be absent
        recording_start_time_ms_since_epoch   when the voice recording started
        traces_start_time_ms_since_epoch      when the trace was switched on, a little earlier; not kept
        caption                               the manual transcription
        traces                                [[{"x", "y", "time_ms_since_epoch", "kf_idx"}]], strokes of points
        time_alignment                        [{"referenced_word", "referenced_word_start_idx",
                                              "referenced_word_end_idx", "start_ms", "end_ms"}]; may be absent
        noun_segments                         [[start, end]], character spans of the caption; may be absent
        recording_filename                    "recordings/OVIS_train/0_0.webm"; may be absent
        language                              ours, not official: as in Localized Narratives
    }]

One clock: all times are seconds since the actor's voice recording started. `start_ms` and `end_ms` are on it already;
of a point's `time_ms_since_epoch` the recording's start is taken off. A point before the recording has a time below 0.

What becomes of oddities. InvalidRecord, with line and place: whatever is not UTF-8 or not JSON, keys missing, given
twice or of the wrong type, a key frame or a character span that does not exist, a word that ends before it starts,
times of points that go back. One bad actor makes the whole record bad. `time_alignment` is sorted by start, as the
official tools do. The official files give each word exactly as the caption spells it; where a file does not, the word
is kept as it is. Strokes without points are left out, unknown keys passed over.

What is written is read back as the same value: points to the fraction of a millisecond that a time since 1970 can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from saywhere.atomic import write_atomic
from saywhere.core.alignment import WordBoxes, word_boxes
from saywhere.core.errors import InvalidValue
from saywhere.core.narrative import Narrative
from saywhere.core.trace import Trace
from saywhere.core.words import Utterance
from saywhere.formats._json_lines import read_values
from saywhere.formats._strokes import NO_TRACE, joined_trace
from saywhere.formats.localized_narratives import noted_language, official_annotator
from saywhere.formats.record import InvalidRecord

Span = tuple[int, int]
# Some 30,000 years around 1970: whole numbers of this size, and their differences, are exact.
_Milliseconds = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]


@dataclass(frozen=True, slots=True)
class ActorNarrative:
    """What was said about one actor of a video, and where the annotator pointed meanwhile.

    narrative: caption, words, trace and recording; its image is the video. Times are seconds since the recording
        started; positions are fractions of the key frame's width and height.
    keyframes: for each point of the trace, the index of the key frame it lies on.
    chosen_keyframes: indices of the key frames that the annotator chose for this actor.
    word_spans: for each utterance of the narrative, first character and end in the caption.
    noun_spans: first character and end of every noun of the caption, as tagged by the data set's authors.
    recording_start_ms: milliseconds since 1970, to put several actors on one clock.
    """

    name: str
    narrative: Narrative
    keyframes: tuple[int, ...]
    chosen_keyframes: tuple[int, ...]
    word_spans: tuple[Span, ...]
    noun_spans: tuple[Span, ...]
    recording_start_ms: float

    def trace_on(self, keyframe: int) -> Trace:
        """The part of the trace that lies on one key frame. Leaving the frame lifts the pen."""
        (here,) = np.nonzero(np.array(self.keyframes, dtype=np.int64) == keyframe)
        breaks = (np.diff(here) > 1) | np.isin(here[1:], self.narrative.trace.starts)
        return Trace.from_segments(np.split(self.narrative.trace.points[here], np.flatnonzero(breaks) + 1))

    def by_frame(self) -> tuple[Trace, tuple[int, ...]]:
        """The trace with the pen lifted wherever it leaves a key frame, and the key frame of each stroke."""
        trace, frames = self.narrative.trace, np.array(self.keyframes, dtype=np.int64)
        leaves = np.flatnonzero(np.diff(frames)) + 1
        starts = sorted({*trace.starts, *leaves.tolist()})
        return Trace(trace.points, starts), tuple(frames[starts].tolist())

    def word_places(self) -> tuple[tuple[int | None, ...], WordBoxes]:
        """For each word the key frame that most of its pointing lies on, and where on it; neither if nobody pointed."""
        words = self.narrative.words
        found, boxes = [-1] * len(words), np.full((len(words), 4), np.nan)
        most = [0] * len(words)
        for frame in dict.fromkeys(self.keyframes):
            trace = self.trace_on(frame)
            here = word_boxes(words, trace)
            for i, word in enumerate(words):
                points = int(np.count_nonzero((trace.times_s >= word.start_s) & (trace.times_s < word.end_s)))
                if here.located[i] and (found[i] < 0 or points > most[i]):
                    found[i], most[i], boxes[i] = frame, points, here.boxes_xyxy[i]
        return tuple(None if frame < 0 else frame for frame in found), WordBoxes(boxes)


@dataclass(frozen=True, slots=True)
class VideoNarrative:
    """What one annotator told about one video: a narrative for each actor, the background among them."""

    video_id: str
    keyframe_names: tuple[str, ...]
    actors: tuple[ActorNarrative, ...]
    dataset_id: str = ""
    annotator_id: str = ""
    vidln_id: str = ""


class _Point(msgspec.Struct, frozen=True, gc=False):
    x: float
    y: float
    time_ms_since_epoch: _Milliseconds
    kf_idx: int


class _AlignedWord(msgspec.Struct, frozen=True, gc=False):
    referenced_word: str
    referenced_word_start_idx: int
    referenced_word_end_idx: int
    start_ms: _Milliseconds
    end_ms: _Milliseconds


class _Actor(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    actor_name: str
    caption: str
    traces: list[list[_Point]]
    recording_start_time_ms_since_epoch: _Milliseconds
    traces_start_time_ms_since_epoch: _Milliseconds | None = None
    keyframe_selection_indices: list[int] | None = None
    time_alignment: list[_AlignedWord] | None = None
    noun_segments: list[Span] | None = None
    recording_filename: str | None = None
    language: str | None = None


class _Video(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    video_id: str | int
    keyframe_names: list[str]
    actor_narratives: list[_Actor]
    dataset_id: str | None = None
    annotator_id: int | str | None = None
    vidln_id: int | str | None = None


_DECODER = msgspec.json.Decoder(_Video)
_ENCODER = msgspec.json.Encoder()


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the file looks like Video Localized Narratives."""
    return b'"actor_narratives"' in head and b'"keyframe_names"' in head


def read(path: str | Path) -> Iterator[VideoNarrative | InvalidRecord]:
    """Every video narrative of the file, in its order; a bad record in its place."""
    return read_values(path, _DECODER, _colons, _video)


def _colons(raw: _Video) -> int:
    texts = [str(raw.video_id), str(raw.dataset_id), str(raw.annotator_id), str(raw.vidln_id), *raw.keyframe_names]
    keys = 3 + _present(raw.dataset_id, raw.annotator_id, raw.vidln_id)
    for actor in raw.actor_narratives:
        words = actor.time_alignment or ()
        texts += [actor.actor_name, actor.caption, actor.recording_filename or "", actor.language or ""]
        texts += [word.referenced_word for word in words]
        keys += 4 * (1 + sum(map(len, actor.traces))) + 5 * len(words)
        keys += _present(
            actor.traces_start_time_ms_since_epoch,
            actor.keyframe_selection_indices,
            actor.time_alignment,
            actor.noun_segments,
            actor.recording_filename,
            actor.language,
        )
    return keys + sum(text.count(":") for text in texts)


def _present(*values: object) -> int:
    return sum(value is not None for value in values)


def _video(raw: _Video) -> VideoNarrative:
    if raw.video_id == "":
        raise InvalidValue("video_id", "is empty")
    return VideoNarrative(
        video_id=str(raw.video_id),
        keyframe_names=tuple(raw.keyframe_names),
        actors=tuple(_actor(raw, i) for i in range(len(raw.actor_narratives))),
        dataset_id=raw.dataset_id or "",
        annotator_id="" if raw.annotator_id is None else str(raw.annotator_id),
        vidln_id="" if raw.vidln_id is None else str(raw.vidln_id),
    )


def _actor(video: _Video, index: int) -> ActorNarrative:
    raw, place = video.actor_narratives[index], f"actor_narratives[{index}]"
    words = _words(raw, place)
    narrative = Narrative(
        image_id=str(video.video_id),
        caption=raw.caption,
        utterances=tuple(Utterance(w.referenced_word, w.start_ms / 1000, w.end_ms / 1000) for w in words),
        trace=_trace(raw, len(video.keyframe_names), f"{place}.traces"),
        dataset_id=video.dataset_id or "",
        annotator_id="" if video.annotator_id is None else str(video.annotator_id),
        audio=raw.recording_filename or "",
        language=raw.language or "",
    )
    chosen = raw.keyframe_selection_indices or []
    for i, keyframe in enumerate(chosen):
        _check_keyframe(keyframe, len(video.keyframe_names), f"{place}.keyframe_selection_indices[{i}]")
    nouns = raw.noun_segments or []
    for i, span in enumerate(nouns):
        _check_span(span, raw.caption, f"{place}.noun_segments[{i}]")
    return ActorNarrative(
        name=raw.actor_name,
        narrative=narrative,
        keyframes=tuple(point.kf_idx for stroke in raw.traces for point in stroke),
        chosen_keyframes=tuple(chosen),
        word_spans=tuple((w.referenced_word_start_idx, w.referenced_word_end_idx) for w in words),
        noun_spans=tuple(nouns),
        recording_start_ms=raw.recording_start_time_ms_since_epoch,
    )


def _words(raw: _Actor, place: str) -> list[_AlignedWord]:
    words = raw.time_alignment or []
    for i, word in enumerate(words):
        where = f"{place}.time_alignment[{i}]"
        _check_span((word.referenced_word_start_idx, word.referenced_word_end_idx), raw.caption, where)
        if word.end_ms < word.start_ms:
            raise InvalidValue(where, f"ends at {word.end_ms:g} ms, before it starts at {word.start_ms:g} ms")
    return sorted(words, key=lambda word: word.start_ms)


def _trace(raw: _Actor, n_keyframes: int, place: str) -> Trace:
    for i, stroke in enumerate(raw.traces):
        for j, point in enumerate(stroke):
            _check_keyframe(point.kf_idx, n_keyframes, f"{place}[{i}][{j}].kf_idx")
    points = list(chain.from_iterable(raw.traces))
    if not points:
        return NO_TRACE
    array = np.array([(p.x, p.y, p.time_ms_since_epoch) for p in points])
    array[:, 2] = (array[:, 2] - raw.recording_start_time_ms_since_epoch) / 1000
    return joined_trace(array, [len(stroke) for stroke in raw.traces], place, "time_ms_since_epoch")


def _check_keyframe(index: int, n_keyframes: int, where: str) -> None:
    if not 0 <= index < n_keyframes:
        raise InvalidValue(where, f"is {index}, but there are {n_keyframes} key frames")


def _check_span(span: Span, caption: str, where: str) -> None:
    start, end = span
    if not 0 <= start <= end <= len(caption):
        raise InvalidValue(where, f"is the span {start} to {end} of a caption of {len(caption)} characters")


def write(path: str | Path, videos: Iterable[VideoNarrative]) -> int:
    """Write video narratives in the official form; how many there were."""
    written = 0
    with write_atomic(path) as file:
        for video in videos:
            file.write(encoded(video) + b"\n")
            written += 1
    return written


def encoded(video: VideoNarrative) -> bytes:
    """One line of the official form, without its end.

    >>> encoded(VideoNarrative("v", ("img_1",), (), "OVIS_train", "7"))
    b'{"video_id":"v","keyframe_names":["img_1"],"actor_narratives":[],"dataset_id":"OVIS_train","annotator_id":7,...
    """
    if not isinstance(video, VideoNarrative):
        raise InvalidValue("video narrative", f"is a {type(video).__name__}")
    raw = _Video(
        video_id=video.video_id,
        keyframe_names=list(video.keyframe_names),
        actor_narratives=[_raw_actor(actor) for actor in video.actors],
        dataset_id=video.dataset_id,
        annotator_id=official_annotator(video.annotator_id),
        vidln_id=official_annotator(video.vidln_id),
    )
    try:
        return _ENCODER.encode(raw)
    except UnicodeEncodeError as error:
        raise InvalidValue(f"video {video.video_id!r}", "holds half a character (a lone surrogate)") from error


def _raw_actor(actor: ActorNarrative) -> _Actor:
    start_ms, told = actor.recording_start_ms, actor.narrative
    times_ms = (start_ms + told.trace.times_s * 1000).tolist()
    points = [
        _Point(x, y, _whole(time_ms), frame)
        for (x, y), time_ms, frame in zip(told.trace.xy.tolist(), times_ms, actor.keyframes, strict=True)
    ]
    ends = (*told.trace.starts[1:], len(points))
    return _Actor(
        actor_name=actor.name,
        caption=told.caption,
        traces=[points[start:end] for start, end in zip(told.trace.starts, ends, strict=True)],
        recording_start_time_ms_since_epoch=_whole(start_ms),
        # The official tools want it; of two clocks that started together it is the other.
        traces_start_time_ms_since_epoch=_whole(min([start_ms, *times_ms[:1]])),
        keyframe_selection_indices=list(actor.chosen_keyframes),
        time_alignment=[
            _AlignedWord(word.text, *span, _whole(word.start_s * 1000), _whole(word.end_s * 1000))
            for word, span in zip(told.utterances, actor.word_spans, strict=True)
        ],
        noun_segments=list(actor.noun_spans),
        recording_filename=told.audio,
        language=noted_language(told),
    )


def _whole(milliseconds: float) -> float:
    """To the thousandth, and as an integer where it is one, as in the official files."""
    rounded = round(milliseconds, 3)
    return int(rounded) if rounded.is_integer() else rounded
