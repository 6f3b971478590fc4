"""VQA v2 or VQA-CP made ready for UpDn and HINT: questions, answers, region features and, where there is some, human
attention (VQA-HAT maps, or boxes as `saywhere build questions` writes them)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from saywhere.build.question_files import read_attention
from saywhere.core import AttentionMap, InvalidValue
from saywhere.core.types import Progress
from saywhere.explain.human import human_importance, mean_attention
from saywhere.formats import hat, vqa
from saywhere.formats.record import InvalidRecord
from saywhere.models.region_features import FeatureFile
from saywhere.models.updown import PreparedQuestion, Questions, save_questions

"""What is being done, how much of it is done, and out of how much."""

_MAP_PX = (64, 64)


@dataclass(frozen=True, slots=True)
class VqaFiles:
    """A split: its questions, and the answers to them."""

    questions: Path
    answers: Path


@dataclass(frozen=True, slots=True)
class PreparedVqa:
    """questions: the folder, read. bad: records that were left out, with the reason. refused: question → why its human
    attention could not be used; the question stays without. unasked: maps of questions that are in no split."""

    questions: Questions
    bad: tuple[InvalidRecord, ...]
    refused: dict[str, str]
    unasked: int


def prepare_vqa(
    out: Path,
    splits: Mapping[str, VqaFiles],
    features: FeatureFile,
    attention: Path | None,
    progress: Progress,
    least_count: int = 9,
) -> PreparedVqa:
    """Write a folder that "updown-vqa" and "hint-vqa" learn from. splits: by name; "train" must be among them.

    features: by the image's id. attention: a folder of VQA-HAT maps, or a JSON of boxes to look at. Images without
    features and questions without answers are counted by the folder.
    """
    bad: list[InvalidRecord] = []
    maps = {} if attention is None else _maps(attention, bad)
    asked: list[PreparedQuestion] = []
    refused: dict[str, str] = {}
    seen: set[str] = set()
    for split, files in splits.items():
        for one in vqa.read(files.questions, files.answers):
            progress(f"reading questions ({split})", len(asked) + 1, 0)
            if isinstance(one, InvalidRecord):
                bad.append(one)
                continue
            key = str(one.question_id)
            seen.add(key)
            looked = maps.get(key)
            importance = None
            if looked is not None and str(one.image_id) in features:
                try:
                    importance = human_importance(looked, features[str(one.image_id)].boxes_xyxy)
                except InvalidValue as error:
                    refused[key] = str(error)
            kinds = (one.question_type, one.answer_type)
            asked.append(PreparedQuestion(key, str(one.image_id), split, one.text, *kinds, one.answers, importance))
    about = {"files": {split: files.questions.name for split, files in splits.items()}}
    save_questions(out, features, asked, about, least_count)
    return PreparedVqa(Questions(out), tuple(bad), refused, len(maps.keys() - seen))


def _maps(path: Path, bad: list[InvalidRecord]) -> dict[str, AttentionMap]:
    """Question → where people look to answer it; several people count the same."""
    if path.is_file():
        boxes = read_attention(path)
        return {str(key): AttentionMap.from_boxes(some, _MAP_PX) for key, some in boxes.items() if len(some)}
    people: dict[str, list[AttentionMap]] = {}
    for one in hat.read(path):
        if isinstance(one, InvalidRecord):
            bad.append(one)
        else:
            people.setdefault(str(one.question_id), []).append(one.attention.resized(_MAP_PX))
    return {key: mean_attention(maps, _MAP_PX) for key, maps in people.items()}


def parse_splits(given: list[str]) -> dict[str, VqaFiles]:
    """ "train=questions.json,answers.json" … as `VqaFiles` by name."""
    splits: dict[str, VqaFiles] = {}
    for text in given:
        name, _, files = text.partition("=")
        parts = files.split(",")
        if not name or len(parts) != 2 or not all(parts):
            raise InvalidValue("split", f"{text!r} is not of the form NAME=QUESTIONS,ANSWERS")
        if name in splits:
            raise InvalidValue("split", f"{name!r} is given twice")
        splits[name] = VqaFiles(Path(parts[0]), Path(parts[1]))
    if "train" not in splits:
        raise InvalidValue(
            "splits", f"are {', '.join(splits) or 'none'}; there is nothing to learn from", "add train=…"
        )
    return splits
