"""Records: values of the world as the official formats write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saywhere.core.narrative import Narrative
from saywhere.world.captions import HighLevelCaptions
from saywhere.world.kinds import CATEGORIES, KINDS
from saywhere.world.narrators import Narration
from saywhere.world.questions import SceneQuestion
from saywhere.world.referring import SceneReference
from saywhere.world.runs import run_lengths
from saywhere.world.scene import Scene
from saywhere.world.video_narrators import ActorNarration, VideoNarration

THINGS_PER_SCENE = 100
"""Annotation ids are scene · this + index of the thing + 1."""

_EPOCH_MS = 1_600_000_000_000
_TRACE_AHEAD_MS = 300


def file_name(index: int) -> str:
    return f"{index:06d}.png"


def annotation_id(scene: int, thing: int) -> int:
    return scene * THINGS_PER_SCENE + thing + 1


def narrative_record(narrative: Narrative) -> dict[str, Any]:
    """Localized Narratives; `origin` is ours and says that no human spoke."""
    return {
        "dataset_id": narrative.dataset_id,
        "image_id": narrative.image_id,
        "annotator_id": int(narrative.annotator_id),
        "caption": narrative.caption,
        "timed_caption": [
            {"utterance": u.text, "start_time": u.start_s, "end_time": u.end_s} for u in narrative.utterances
        ],
        "traces": [[{"x": x, "y": y, "t": t} for x, y, t in segment.tolist()] for segment in narrative.trace.segments],
        "voice_recording": narrative.audio,
        "origin": narrative.origin,
    }


def word_truth_record(scene: Scene, narration: Narration) -> dict[str, Any]:
    """Ours: for each word of the narrative on the same line of its file, the annotation ids of what it refers to."""
    return {
        "image_id": narration.narrative.image_id,
        "annotator_id": int(narration.narrative.annotator_id),
        "word_annotations": [[annotation_id(scene.index, i) for i in things] for things in narration.word_things],
    }


def image_record(scene: Scene, split: str) -> dict[str, Any]:
    return {
        "id": scene.index,
        "file_name": file_name(scene.index),
        "width": scene.size,
        "height": scene.size,
        "scene_type": scene.place,
        "split": split,
    }


def instance_records(scene: Scene) -> list[dict[str, Any]]:
    """COCO instances, one for each thing, stuff too; what is ours beyond COCO: colour, depth and the like."""
    records = []
    for i, thing in enumerate(scene.things):
        x1, y1, x2, y2 = (round(v * scene.size) for v in thing.box_xyxy)
        records.append(
            {
                "id": annotation_id(scene.index, i),
                "image_id": scene.index,
                "category_id": CATEGORIES.index(thing.kind) + 1,
                "bbox": [x1, y1, x2 - x1, y2 - y1],
                "area": round(thing.area * scene.size**2),
                "iscrowd": 0,
                "segmentation": run_lengths(scene.mask(i)),
                "stuff": thing.stuff,
                "color": thing.colour,
                "pose": thing.pose,
                "visible": round(thing.visible, 4),
                "depth": round(thing.depth, 4),
                "on": None if thing.on is None else annotation_id(scene.index, thing.on),
            }
        )
    return records


def category_records() -> list[dict[str, Any]]:
    return [
        {"id": i + 1, "name": name, "supercategory": KINDS[name].group if name in KINDS else "stuff"}
        for i, name in enumerate(CATEGORIES)
    ]


def hl_record(scene: Scene, captions: HighLevelCaptions, objects: Sequence[str]) -> dict[str, Any]:
    """HL; purity and diversity, which its authors computed with models, are left out."""
    return {
        "file_name": file_name(scene.index),
        "captions": {**captions.captions, "object": objects},
        "confidence": captions.confidence,
    }


def reference_record(scene: Scene, reference: SceneReference, ref_id: int, split: str) -> dict[str, Any]:
    first = ref_id * 10
    return {
        "ref_id": ref_id,
        "ann_id": annotation_id(scene.index, reference.thing),
        "image_id": scene.index,
        "category_id": CATEGORIES.index(scene.things[reference.thing].kind) + 1,
        "split": split,
        "file_name": file_name(scene.index),
        "sent_ids": [first + k for k in range(len(reference.expressions))],
        "sentences": [
            {"sent_id": first + k, "sent": text, "raw": text, "tokens": text.split()}
            for k, text in enumerate(reference.expressions)
        ],
    }


def question_record(question: SceneQuestion, question_id: int) -> dict[str, Any]:
    return {"image_id": question.scene, "question": question.text, "question_id": question_id}


def answer_record(question: SceneQuestion, question_id: int, split: str) -> dict[str, Any]:
    """VQA v2; `evidence`, the annotation ids of what one must look at, and `split` are ours."""
    return {
        "question_id": question_id,
        "image_id": question.scene,
        "question_type": question.question_type,
        "answer_type": question.answer_type,
        "multiple_choice_answer": question.answer,
        "answers": [
            {"answer": answer, "answer_confidence": "yes", "answer_id": k + 1}
            for k, answer in enumerate(question.answers)
        ],
        "evidence": [annotation_id(question.scene, thing) for thing in question.things],
        "split": split,
    }


def video_record(narration: VideoNarration, vidln_id: int) -> dict[str, Any]:
    """Video Localized Narratives."""
    return {
        "vidln_id": vidln_id,
        "dataset_id": "saywhere_world",
        "video_id": narration.video_id,
        "keyframe_names": narration.keyframe_names,
        "actor_narratives": [_actor_record(actor, vidln_id, k) for k, actor in enumerate(narration.actors)],
        "annotator_id": int(narration.annotator_id),
    }


def _actor_record(actor: ActorNarration, vidln_id: int, number: int) -> dict[str, Any]:
    start_ms = _EPOCH_MS + vidln_id * 1_000_000 + number * 100_000
    narrative = actor.narrative
    strokes, point = [], 0
    for segment in narrative.trace.segments:
        stroke = []
        for x, y, t in segment.tolist():
            time_ms = start_ms + round(t * 1000)
            stroke.append({"x": x, "y": y, "time_ms_since_epoch": time_ms, "kf_idx": actor.keyframes[point]})
            point += 1
        strokes.append(stroke)
    return {
        "actor_name": actor.name,
        "keyframe_selection_indices": actor.chosen_keyframes,
        "recording_start_time_ms_since_epoch": start_ms,
        "traces_start_time_ms_since_epoch": start_ms - _TRACE_AHEAD_MS,
        "caption": narrative.caption,
        "traces": strokes,
        "time_alignment": [
            {
                "referenced_word": narrative.caption[a:b],
                "referenced_word_start_idx": a,
                "referenced_word_end_idx": b,
                "start_ms": round(u.start_s * 1000),
                "end_ms": round(u.end_s * 1000),
            }
            for (a, b), u in zip(actor.word_spans, narrative.utterances, strict=True)
        ],
        "noun_segments": actor.noun_spans,
        "recording_filename": "",
    }
