"""A video that somebody told about: three frames, two actors, a voice; on disk as the official files are."""

from __future__ import annotations

import json
import math
import struct
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

START_MS = 1_646_807_046_669
NAMES = ("img_0000005", "img_0000012", "img_0000019")
COLOURS = ("#aa3333", "#33aa33", "#3333aa")


def _point(x: float, y: float, ms: int, frame: int) -> dict[str, Any]:
    return {"x": x, "y": y, "time_ms_since_epoch": START_MS + ms, "kf_idx": frame}


def _word(text: str, first: int, start_ms: int, end_ms: int) -> dict[str, Any]:
    span = {"referenced_word_start_idx": first, "referenced_word_end_idx": first + len(text)}
    return {"referenced_word": text, "start_ms": start_ms, "end_ms": end_ms} | span


CAT = {
    "actor_name": "Cat",
    "keyframe_selection_indices": [0, 2],
    "recording_start_time_ms_since_epoch": START_MS,
    "caption": "A cat sleeps.",
    # From the first frame to the third and back, in one stroke and another; it begins before the voice.
    "traces": [
        [_point(0.1, 0.2, -100, 0), _point(0.2, 0.3, 200, 0), _point(0.6, 0.6, 600, 2), _point(0.8, 0.7, 900, 2)],
        [_point(0.3, 0.3, 1200, 0), _point(0.4, 0.4, 1500, 0)],
    ],
    "time_alignment": [_word("A", 0, 100, 400), _word("cat", 2, 500, 1000), _word("sleeps.", 6, 1100, 1600)],
    "recording_filename": "recordings/OVIS_train/0_0.wav",
}
BACKGROUND = {
    "actor_name": "background",
    "recording_start_time_ms_since_epoch": START_MS,
    "caption": "A room.",
    "traces": [[_point(0.5, 0.5, 100, 1), _point(0.6, 0.5, 400, 1)]],
}


def write_video(folder: Path, frames: Sequence[int] = (0, 1, 2), voice: bool = True) -> Path:
    """The file of narratives, with those frames beside it, and the voice."""
    record = {
        "vidln_id": 0,
        "dataset_id": "OVIS_train",
        "video_id": "c1a40349",
        "keyframe_names": list(NAMES),
        "actor_narratives": [CAT, BACKGROUND],
        "annotator_id": 103,
    }
    shots = folder / "frames" / "c1a40349"
    shots.mkdir(parents=True)
    for i in frames:
        Image.new("RGB", (64, 36), COLOURS[i]).save(shots / f"{NAMES[i]}.png")
    if voice:
        (folder / "recordings").mkdir()
        _write_voice(folder / "recordings" / "0_0.wav")
    path = folder / "narratives.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return path


def _write_voice(path: Path, seconds: float = 2.0, rate: int = 8_000) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        values = (round(9_000 * math.sin(i / 10)) for i in range(int(seconds * rate)))
        file.writeframes(b"".join(struct.pack("<h", value) for value in values))
