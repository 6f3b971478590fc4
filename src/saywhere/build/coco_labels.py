"""What people said of COCO's photographs, read from the official files or from the compact ones; see docs/data.md.

Every label passes one gate, `Labels.take`: of a photo that is kept out nothing comes in.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Progress
from saywhere.formats import aokvqa, coco_captions, coco_instances, refcoco, referring_lines, vqa, vsr
from saywhere.formats._boxes import BoxXyxy, check_box, xyxy
from saywhere.formats._documents import Id, built, lines
from saywhere.formats.coco_instances import Instance
from saywhere.formats.files import read_lines
from saywhere.formats.record import InvalidRecord
from saywhere.store.digest import content_digest

TEXTS = ("captions", "referring", "questions", "cocoqa")
VQA = "vqa"
"""Where questions come from that do not say so; the others say okvqa, aokvqa or vsr."""
_NUMBER = {name: number for number, name in enumerate(COCO_CLASSES)}
_COCOQA_KINDS = ("object", "number", "color", "location")
_VQA_SPLITS = {"train2014": "train", "val2014": "valid"}
# Of the photo; a thinner box would have no area in single precision.
_THINNEST = 1e-6
_OTHER_SPLITS = ("test", "validation", "val2017")


@dataclass(frozen=True, slots=True)
class Label:
    """One thing said of one photo. field: one of TEXTS, or "boxes", "crowd" (boxes of groups), "size_px"."""

    photo: int | str
    field: str
    value: Any


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that did not come in. kind: "kept out", "bad label", … what: a photo, a file, or a place in one."""

    kind: str
    what: str
    reason: str


@dataclass(slots=True)
class Labels:
    """The labels of every photo by its number, small in memory: boxes as arrays, texts as JSON.

    kept_out: photos of which nothing is taken. kept_back: how many labels that were. taken: how many came in, by field.
    """

    kept_out: frozenset[int]
    sizes_px: dict[int, tuple[int, int]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    kept_back: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    _boxes: dict[int, array[float]] = field(default_factory=dict)
    _texts: dict[str, dict[int, bytearray]] = field(default_factory=lambda: {name: {} for name in TEXTS})

    def take(self, label: Label) -> None:
        """Keep a label, unless its photo is kept out. InvalidValue for one that cannot be."""
        photo = photo_number(label.photo)
        if photo in self.kept_out:
            self.kept_back += label.field != "size_px"
        elif label.field == "size_px":
            self.sizes_px[photo] = label.value
        elif label.field == "crowd":
            self.left_out.append(LeftOut("box of a group", photo_key(photo), f"{label.value} marked as one"))
        else:
            if label.field == "boxes":
                kind, box_xyxy = label.value
                self._boxes.setdefault(photo, array("f")).extend((kind, *box_xyxy))
            else:
                texts = self._texts[label.field].setdefault(photo, bytearray())
                texts += (b"," if texts else b"") + msgspec.json.encode(label.value)
            self.taken[label.field] += 1

    @property
    def photos(self) -> set[int]:
        """Photos of which anything is known."""
        return self.sizes_px.keys() | self._boxes.keys() | {one for texts in self._texts.values() for one in texts}

    def row(self, photo: int) -> dict[str, Any]:
        """boxes_xyxy: (n, 4), fractions of the photo. classes: (n,). Each of TEXTS: the list of its entries as JSON."""
        boxes = np.array(self._boxes.get(photo, ()), np.float32).reshape(-1, 5)
        texts = {name: b"[" + bytes(some.get(photo, b"")) + b"]" for name, some in self._texts.items()}
        return {"boxes_xyxy": boxes[:, 1:], "classes": boxes[:, 0], **{k: msgspec.Raw(v) for k, v in texts.items()}}


def photo_number(name: int | str) -> int:
    """139 of 139, "139" or "000000000139"."""
    number = int(name) if isinstance(name, int) or (name.isascii() and name.isdigit()) else -1
    if not 0 <= number < 10**12:
        raise InvalidValue("photo", "is not a number of COCO's")
    return number


def photo_key(number: int) -> str:
    return f"{number:012d}"


def kept_out(*lists: Path) -> frozenset[int]:
    """Photos that nothing may learn from: those of the lists, one a line, and always val2017 with our test photos."""
    ours = [files("saywhere.build") / f"{name}_photos.txt" for name in _OTHER_SPLITS]
    names = {photo_number(name) for one in ours for name in one.read_text(encoding="utf-8").split()}
    for path in lists:
        for line in read_lines(path):
            if isinstance(line, InvalidRecord):
                raise InvalidFile(path, line.reason)
            try:
                names.add(photo_number(line[1].decode("utf-8", "replace").strip()))
            except InvalidValue as error:
                raise InvalidFile(path, f"line {line[0]}: {error.reason}", "write one number a line") from error
    return frozenset(names)


def label_files(folder: Path) -> list[tuple[Path, _Reader]]:
    """The files of labels in a folder, and what reads each. One with boxes must be there."""
    found = [(path, read) for pattern, read in _READERS.items() for path in sorted(folder.glob(pattern))]
    with_boxes = sum(read in (_instances, _tsv_boxes) for _, read in found)
    if with_boxes != 1:
        hint = "it should have either annotations/instances_train2017.json or boxes.tsv.gz"
        raise InvalidFile(folder, f"has {with_boxes or 'no'} files with boxes of COCO photos", hint)
    return found


def label_digests(folder: Path) -> dict[str, str]:
    """Name → digest of every file that is read for labels, also those that others need."""
    paths = [path for path, _ in label_files(folder)] + [one for name in _BESIDE for one in folder.glob(name)]
    return {path.name: content_digest(path)[:16] for path in sorted(paths)}


def read_labels(folder: Path, kept: frozenset[int], progress: Progress) -> Labels:
    """All labels of a folder in either layout; bad ones are named in `left_out`."""
    labels, found = Labels(kept), label_files(folder)
    for number, (path, read) in enumerate(found):
        progress("reading labels", number, len(found))
        for label in read(path):
            if isinstance(label, InvalidRecord):
                labels.left_out.append(_bad(label))
                continue
            try:
                labels.take(label)
            except InvalidValue as error:
                labels.left_out.append(LeftOut("bad label", f"{path.name}: {label.field}", str(error)))
    progress("reading labels", len(found), len(found))
    return labels


def _bad(record: InvalidRecord) -> LeftOut:
    """Without the excerpt: the words of photos that are kept out must not be written anywhere."""
    place = record.where or (f"line {record.line}" if record.line else "")
    return LeftOut("bad label", f"{Path(record.path).name}{': ' if place else ''}{place}", record.reason)


def _inside(box_xyxy: BoxXyxy) -> BoxXyxy:
    """The part of a box that is on the photo. Annotated ones lap over its edges by rounding."""
    check_box(box_xyxy, (1, 1))
    x1, y1, x2, y2 = max(box_xyxy[0], 0.0), max(box_xyxy[1], 0.0), min(box_xyxy[2], 1.0), min(box_xyxy[3], 1.0)
    if min(x2 - x1, y2 - y1) < _THINNEST:
        raise InvalidValue("the box", "has no area")
    return x1, y1, x2, y2


def _class_number(text: str) -> int:
    number = int(text)
    if not 0 <= number < len(COCO_CLASSES):
        raise InvalidValue("class", f"is {number}, not one of 0 … {len(COCO_CLASSES) - 1}")
    return number


def _words(text: str, what: str) -> str:
    if not text.strip():
        raise InvalidValue(what, "is empty")
    return text.strip()


# The official files.

_Referred = dict[int | str, list[tuple[Path, refcoco.Reference]]]


def _instances(path: Path) -> Iterator[Label | InvalidRecord]:
    """Boxes, and the referring expressions of refs*.json beside them, which name their boxes by annotation."""
    referred: _Referred = {}
    for refs in sorted(path.parent.glob("refs*.json")):
        for reference in refcoco.read(refs):
            if isinstance(reference, InvalidRecord):
                yield reference
            else:
                referred.setdefault(reference.annotation_id, []).append((refs, reference))
    for instance in coco_instances.read(path):
        if isinstance(instance, InvalidRecord):
            yield instance
            continue
        yield Label(instance.image_id, "size_px", (instance.width, instance.height))
        try:
            yield from _of_instance(instance, referred)
        except InvalidValue as error:
            yield InvalidRecord(str(path), 0, str(error), f"annotation {instance.annotation_id}")
    for some in referred.values():
        for refs, reference in some:
            reason = f"its object {reference.annotation_id} is no single thing of {path.name}"
            yield InvalidRecord(str(refs), 0, reason, f"ref {reference.reference_id}")


def _of_instance(instance: Instance, referred: _Referred) -> Iterator[Label]:
    if instance.iscrowd:
        yield Label(instance.image_id, "crowd", instance.category)
        return
    if instance.category not in _NUMBER:
        raise InvalidValue("the category", f"{instance.category!r} is none of COCO's 80")
    kind, box_xyxy = _NUMBER[instance.category], _inside(instance.box_xyxy)
    yield Label(instance.image_id, "boxes", (kind, box_xyxy))
    for refs, reference in referred.pop(instance.annotation_id, ()):
        split = f"{refs.stem.removeprefix('refs').strip('()')}_{reference.split}"
        for one in reference.expressions:
            yield Label(instance.image_id, "referring", _expression(split, kind, box_xyxy, one.text))


def _expression(split: str, kind: int, box_xyxy: BoxXyxy, text: str) -> dict[str, Any]:
    box = [round(edge, 5) for edge in box_xyxy]
    return {"split": split, "class": kind, "box_xyxy": box, "expression": _words(text, "the expression")}


def _captions(path: Path) -> Iterator[Label | InvalidRecord]:
    for record in coco_captions.read(path):
        if isinstance(record, InvalidRecord):
            yield record
            continue
        if record.width is not None and record.height is not None:
            yield Label(record.image_id, "size_px", (record.width, record.height))
        yield Label(record.image_id, "captions", record.caption.strip())


def _vqa(path: Path) -> Iterator[Label | InvalidRecord]:
    """v2_mscoco_SPLIT_annotations.json of VQA v2, or without "v2_" as OK-VQA has it, and the questions beside it."""
    start, _, rest = path.name.partition("mscoco_")
    part = rest.removesuffix("_annotations.json")
    questions = path.with_name(f"{start}OpenEnded_mscoco_{part}_questions.json")
    split, source = _VQA_SPLITS.get(part, part), VQA if start else "okvqa"
    for question in vqa.read(questions, path):
        yield question if isinstance(question, InvalidRecord) else _question(question, split, source)


def _aokvqa(path: Path) -> Iterator[Label | InvalidRecord]:
    """aokvqa_v1p0_SPLIT.json. Questions whose answers are not public, or agree too little, have the right choice."""
    for one in aokvqa.read(path):
        if isinstance(one, InvalidRecord):
            yield one
        elif answers := (one.correct,) if one.difficult and one.correct else one.answers:
            kinds = one.question_type, one.answer_type
            question = vqa.Question(one.question_id, one.image_id, one.text, *kinds, answers, answers[0])
            yield _question(question, one.split or "train", "aokvqa")


def _vsr(path: Path) -> Iterator[Label | InvalidRecord]:
    """Sentences of Visual Spatial Reasoning, asked for."""
    for number, one in enumerate(vsr.read(path), start=1):
        if isinstance(one, InvalidRecord):
            yield one
            continue
        answer = "yes" if one.is_true else "no"
        begins, photo = one.question.split()[0].lower(), Path(one.file_name).stem
        question = vqa.Question(f"vsr {number}", photo, one.question, begins, "yes/no", (answer,), answer)
        yield _question(question, "train", "vsr")


def _question(question: vqa.Question, split: str, source: str) -> Label:
    entry = {
        "source": source,
        "id": question.question_id,
        "question": question.text,
        "question_type": question.question_type,
        "answer_type": question.answer_type,
        "answer": question.multiple_choice_answer,
        "answers": question.answers,
        "split": split,
    }
    return Label(question.image_id, "questions", entry)


# The compact files.


class _Question(msgspec.Struct, frozen=True, gc=False):
    question_id: Id
    image_id: Id
    question: str
    question_type: str
    answer_type: str
    answer: str
    answers: list[tuple[str, str]]


_QUESTION = msgspec.json.Decoder(_Question)


def _vqa_lines(path: Path) -> Iterator[Label | InvalidRecord]:
    """vqa_v2_part_SPLIT.jsonl: a question with its ten answers a line."""
    split = path.name.removeprefix("vqa_v2_part_").partition(".")[0]

    def label(one: _Question) -> Label:
        answers = tuple(answer for answer, _ in one.answers)
        if not answers:
            raise InvalidValue(f"question {one.question_id}", "has no answers")
        kinds = one.question_type, one.answer_type
        return _question(
            vqa.Question(one.question_id, one.image_id, one.question, *kinds, answers, one.answer), split, VQA
        )

    yield from built(lines(path, _QUESTION), label)


def _tsv(path: Path, columns: int, label: Callable[..., Label]) -> Iterator[Label | InvalidRecord]:
    """What `label` makes of the columns of every line, or the ValueError that it raises."""
    for line in read_lines(path):
        if isinstance(line, InvalidRecord):
            yield line
            continue
        try:
            cells = line[1].decode().rstrip("\r\n").split("\t")
            if len(cells) != columns:
                raise InvalidValue("the line", f"has {len(cells)} columns, not {columns}")
            yield label(*cells)
        except InvalidValue as error:
            yield InvalidRecord(str(path), line[0], str(error))
        except UnicodeDecodeError:
            yield InvalidRecord(str(path), line[0], "is not UTF-8 text")
        except ValueError:
            yield InvalidRecord(str(path), line[0], "has text where a number should be")


def _tsv_boxes(path: Path) -> Iterator[Label | InvalidRecord]:
    def label(photo: str, kind: str, *box: str) -> Label:
        x, y, width, height = map(float, box)
        box_xyxy = xyxy((x - width / 2, y - height / 2, width, height))
        return Label(photo_number(photo), "boxes", (_class_number(kind), _inside(box_xyxy)))

    return _tsv(path, 6, label)


def _tsv_captions(path: Path) -> Iterator[Label | InvalidRecord]:
    return _tsv(path, 2, lambda photo, text: Label(photo_number(photo), "captions", _words(text, "the caption")))


def _referring_lines(path: Path) -> Iterator[Label | InvalidRecord]:
    for one in referring_lines.read(path):
        if isinstance(one, InvalidRecord):
            yield one
            continue
        try:
            expression = _expression(one.split, _NUMBER[one.category], _inside(one.box_xyxy), one.text)
            yield Label(photo_number(one.image_id), "referring", expression)
        except InvalidValue as error:
            yield InvalidRecord(str(path), one.line, str(error))


def _tsv_cocoqa(path: Path) -> Iterator[Label | InvalidRecord]:
    def label(split: str, photo: str, kind: str, question: str, answer: str) -> Label:
        if kind not in "0123" or len(kind) != 1:
            raise InvalidValue("type", f"is {kind!r}, not one of 0 … 3")
        entry = {"question": _words(question, "the question"), "answer": _words(answer, "the answer")}
        return Label(photo_number(photo), "cocoqa", {**entry, "kind": _COCOQA_KINDS[int(kind)], "split": split})

    return _tsv(path, 5, label)


_BESIDE = ("annotations/refs*.json", "annotations/*OpenEnded_mscoco_*_questions.json")
_Reader = Callable[[Path], Iterator[Label | InvalidRecord]]
_READERS: dict[str, _Reader] = {
    "annotations/instances_train2017.json": _instances,
    "annotations/captions_train2017.json": _captions,
    "annotations/v2_mscoco_*_annotations.json": _vqa,
    "annotations/mscoco_*_annotations.json": _vqa,
    "annotations/aokvqa_v1p0_*.json": _aokvqa,
    "annotations/*vsr*.jsonl": _vsr,
    "boxes.tsv.gz": _tsv_boxes,
    "captions.tsv.gz": _tsv_captions,
    "referring.tsv.gz": _referring_lines,
    "vqa_v2_part_*.jsonl.gz": _vqa_lines,
    "cocoqa.tsv.gz": _tsv_cocoqa,
}
