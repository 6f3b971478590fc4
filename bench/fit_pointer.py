"""Where the constants of the simulated pointer come from: real mouse traces, measured.

    python bench/fit_pointer.py SHARED_FOLDER

Reads three sources and prints one line for each constant of `saywhere.world.pointer`:

* OSIE, mouse in the lab (9,726 traces at 800 × 600, whole pixels, no times). Repeated positions and the fast part of
  every movement are missing from these files, so they tell how a hand moves while it dwells (jitter, drift) and how far
  and how exactly it jumps, but not how long that takes. Assumption: one sample each 1/60 s, as in the two sources with
  times; with 5 s of viewing that allows 300 samples, and the longest trace has 245.
* Localized Narratives, one raw record with times: how fast the pointer runs while someone speaks freely.
* Video Localized Narratives, seven raw narratives with times, pen-up gaps and word times: strokes, gaps, lag.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from saywhere.core.types import Floats

WIDTH_PX, HEIGHT_PX = 800, 600
RATE_HZ = 60.0
JUMP_PX = 12.0  # Steps are bimodal: below lies dwelling, above are movements whose inner samples are missing.


def lab_traces(folder: Path) -> Iterator[Floats]:
    """(n, 2) x, y in pixels, one for each subject and photo."""
    for path in sorted(folder.glob("*.mat")):
        fixations = loadmat(path, squeeze_me=True, struct_as_record=False)["fixations"]
        for subject in np.unique(fixations.subj):
            yield fixations.coord[fixations.subj == subject][:, ::-1].astype(float)


def timed_strokes(shared: Path) -> Iterator[tuple[str, list[Floats], list[tuple[float, str]]]]:
    """Source, strokes (n, 3) as x, y in fractions and seconds, and the nouns with the seconds at which they start."""
    record = json.loads(next((shared / "data/localized_narratives").glob("*.jsonl")).read_text().splitlines()[0])
    yield "image", [np.array([[p["x"], p["y"], p["t"]] for p in stroke]) for stroke in record["traces"]], []
    for line in (shared / "data/video_narratives/OVIS_train_sample.jsonl").read_text().splitlines():
        for actor in json.loads(line)["actor_narratives"]:
            zero = actor["recording_start_time_ms_since_epoch"]
            strokes = [
                np.array([[p["x"], p["y"], (p["time_ms_since_epoch"] - zero) / 1000] for p in stroke])
                for stroke in actor["traces"]
            ]
            first = {start for start, _ in actor["noun_segments"]}
            nouns = [
                (word["start_ms"] / 1000, word["referenced_word"])
                for word in actor.get("time_alignment") or ()
                if word["referenced_word_start_idx"] in first
            ]
            yield "video", strokes, nouns


def fit_lab(folder: Path) -> dict[str, float]:
    steps, jitters, jumps, overshoots, landed, drift = [], [], [], [], 0, []
    for xy in lab_traces(folder):
        moves = np.diff(xy, axis=0)
        length = np.hypot(*moves.T)
        steps.append(length[length < JUMP_PX])
        runs = np.split(xy, np.flatnonzero(length >= JUMP_PX) + 1)
        for run in runs:
            if len(run) >= 5:
                jitters.append(np.diff(run, 2, axis=0).ravel())
                drift.append(np.hypot(*(run - run.mean(axis=0)).T).mean())
        for before, after in pairwise(runs):
            jump = after[0] - before[-1]
            far = float(np.hypot(*jump))
            jumps.append(far)
            if far >= 40 and len(after) >= 8:
                # Most jumps fall short and creep on; one that turns back by over 2 pixels went too far.
                back = float(((after[:12] - after[0]) @ jump).min() / far)
                landed += 1
                if back < -2:
                    overshoots.append(-back / far)
    second = np.concatenate(jitters)
    # White jitter s gives second differences of variance 6 s² and rounding to pixels adds 6/12; the hand's own
    # curvature is in there too, so a robust spread (quartiles) is taken, which the few sharp turns do not move.
    spread = float(np.subtract(*np.percentile(second, [75, 25])) / 1.349)
    return {
        "DWELL_SPEED (widths/s)": float(np.median(np.concatenate(steps)) * RATE_HZ / WIDTH_PX),
        "JITTER (widths)": float(np.sqrt(max(0.0, spread**2 - 0.5) / 6) / WIDTH_PX),
        "WANDER (widths)": float(np.median(drift) / WIDTH_PX),
        "jump length, median (widths)": float(np.median(jumps) / WIDTH_PX),
        "OVERSHOOT_SHARE": len(overshoots) / landed,
        "OVERSHOOT (of the way, median)": float(np.median(overshoots)),
    }


def moves_of(stroke: Floats) -> Iterator[tuple[float, float]]:
    """Distance (fractions) and seconds of each movement: from one slow moment to the next."""
    if len(stroke) < 8:
        return
    steps = np.diff(stroke, axis=0)
    steps[:, 2] = np.maximum(steps[:, 2], 1e-3)
    speed = np.convolve(np.hypot(steps[:, 0], steps[:, 1]) / steps[:, 2], np.ones(5) / 5, mode="same")
    slow = [
        0,
        *(i for i in range(1, len(speed) - 1) if speed[i] <= speed[i - 1] and speed[i] < speed[i + 1]),
        len(speed),
    ]
    for a, b in pairwise(slow):
        distance = float(np.hypot(*(stroke[b, :2] - stroke[a, :2])))
        if distance > 0.01 and b - a >= 4:
            yield distance, float(stroke[b, 2] - stroke[a, 2])


def fit_timed(shared: Path) -> dict[str, float]:
    intervals, speeds, moves, gaps, lags, lengths, medians = [], [], [], [], [], [], {"image": [], "video": []}
    for source, strokes, nouns in timed_strokes(shared):
        dt = np.concatenate([np.diff(stroke[:, 2]) for stroke in strokes])
        path = np.concatenate([np.hypot(*np.diff(stroke[:, :2], axis=0).T) for stroke in strokes])
        intervals.append(dt)
        running = (dt > 0) & (path > 0)
        speeds.append(np.log(path[running] / dt[running]) - np.log(np.median(path[running] / dt[running])))
        medians[source].append(float(np.median(path[running] / dt[running])))
        for stroke in strokes:
            moves += moves_of(stroke)
            lengths.append(stroke[-1, 2] - stroke[0, 2])
        gaps += [b[0, 2] - a[-1, 2] for a, b in pairwise(strokes)]
        starts = np.array([stroke[0, 2] for stroke in strokes])
        lags += [float((starts - at)[np.abs(starts - at).argmin()]) for at, _ in nouns]
    dt = np.concatenate(intervals)
    far, took = np.log(np.array(moves)).T
    slope, base = np.polyfit(far, took, 1)
    near = [lag for lag in lags if abs(lag) < 1.5]
    return {
        "RATE_HZ": float(1 / np.median(dt)),
        "STILL_SHARE (no event for over 2 samples)": float((dt > 2.5 / RATE_HZ).mean()),
        "RUN_SPEED, image (widths/s)": float(np.median(medians["image"])),
        "RUN_SPEED, video (widths/s)": float(np.median(medians["video"])),
        "SPEED_SPREAD (sd of log within a narrative)": float(np.concatenate(speeds).std()),
        "MOVE_BASE_S (seconds for a whole width)": float(np.exp(base)),
        "MOVE_POWER": float(slope),
        "GAP_S (median)": float(np.median(gaps)),
        "GAP_SPREAD (sd of log)": float(np.log(np.array(gaps)[np.array(gaps) > 0]).std()),
        "STROKE_S (median)": float(np.median(lengths)),
        "LAG_S (stroke start - noun start, mean)": float(np.mean(near)),
        # A stroke is paired with the nearest noun, right or wrong, so the true spread is smaller than this.
        "lag, sd of the pairs (upper bound)": float(np.std(near)),
        "nouns with a stroke within 1.5 s": len(near) / len(lags),
    }


def main() -> None:
    shared = Path(sys.argv[1])
    for name, value in {**fit_lab(shared / "data/osie/mouse_lab"), **fit_timed(shared)}.items():
        print(f"{name:45s} {value:.4g}")


if __name__ == "__main__":
    main()
