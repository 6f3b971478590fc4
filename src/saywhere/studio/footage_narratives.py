"""What was told about footage, as Video Localized Narratives: one record of the store for each actor.

A record has, beside what a photo's narrative has, `actor` (whom it tells of), `frames` (the names of those that were
chosen) and `stroke_frames` (for each stroke the place of its frame among these). Its `photo` is the footage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

import numpy as np

from saywhere.core.narrative import Narrative
from saywhere.core.trace import Trace
from saywhere.core.words import Utterance
from saywhere.formats.video_narratives import ActorNarrative, Span, VideoNarrative
from saywhere.studio.exports import DATASET
from saywhere.studio.footage import Footage
from saywhere.studio.narratives import word_spans

Record = Mapping[str, Any]


def videos_of(footage: Footage, records: Iterable[Record]) -> Iterator[VideoNarrative]:
    """What each annotator told about one video, actor by actor in the order of telling."""
    by_annotator = sorted(records, key=lambda record: (record["annotator"], record["created"], record["id"]))
    for annotator, told in groupby(by_annotator, key=lambda record: record["annotator"]):
        actors = list(told)
        names = sorted({*footage.frames, *(name for record in actors for name in record["frames"])})
        yield VideoNarrative(
            video_id=footage.name,
            keyframe_names=tuple(names),
            actors=tuple(actor_of(record, footage.name, names) for record in actors),
            dataset_id=DATASET,
            annotator_id=annotator,
        )


def actor_of(record: Record, video: str, names: Sequence[str]) -> ActorNarrative:
    """A kept record as the value of its format. names: of all frames of the video, which numbers of frames refer to."""
    place = {name: i for i, name in enumerate(names)}
    chosen = tuple(place[name] for name in record["frames"])
    trace = Trace(record["trace"]["points"], record["trace"]["starts"])
    lengths = np.diff([*record["trace"]["starts"], len(trace)])
    on_frames = np.array([chosen[i] for i in record["stroke_frames"]], dtype=np.int64)
    spans: tuple[Span, ...] = word_spans(record["text"], [word["text"] for word in record["words"]])
    return ActorNarrative(
        name=record["actor"],
        narrative=Narrative(
            image_id=video,
            caption=record["text"],
            utterances=tuple(Utterance(word["text"], word["start_s"], word["end_s"]) for word in record["words"]),
            trace=trace,
            dataset_id=DATASET,
            annotator_id=record["annotator"],
            audio=f"recordings/{record['id']}.wav" if record["audio"] else "",
            origin=record["origin"],
            language=record.get("language") or "",
        ),
        keyframes=tuple(np.repeat(on_frames, lengths).tolist()),
        chosen_keyframes=chosen,
        word_spans=spans,
        noun_spans=(),
        recording_start_ms=datetime.fromisoformat(record["created"]).timestamp() * 1000,
    )
