"""Questions about COCO's photos to learn answers from: people's (VQA v2), those made from captions (COCO-QA), and those
made here, from boxes, some of which point, and from what captions say.

Photos, not questions, are what is held out: nothing is learnt about a photo that VQA keeps for validation ("test"
here), nor about one of the store's own validation photos and one in 25 of the others, by which is chosen and calibrated
("tune"). What is chosen and measured there are VQA's own questions: those of other sets, of people too, are learnt from
alone, because knowledge and tricky places are asked for in another measure than VQA's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from saywhere.atomic import write_atomic
from saywhere.build.box_questions import AskSettings, ask
from saywhere.build.caption_questions import ask_captions
from saywhere.build.coco import KIND
from saywhere.build.coco_labels import VQA
from saywhere.build.photo_boxes import PhotoBoxes, by_photo
from saywhere.build.region_texts import ClassBox
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Progress
from saywhere.language.coco_aliases import coco_aliases
from saywhere.language.vocabulary import plain_words
from saywhere.models.answerer.answering import TokenEncoder
from saywhere.models.answerer.data import (
    ANSWERS,
    HUMAN,
    PLACES,
    QUESTIONS,
    QUESTIONS_FIELDS,
    QUESTIONS_KIND,
    TEST,
    TEXTS,
    TEXTS_FIELDS,
    TEXTS_KIND,
    TRAIN,
    TUNE,
    WORDS,
    StoredQuestion,
)
from saywhere.models.common.answers import AnswerVocabulary
from saywhere.models.region_features import REGIONS
from saywhere.store import Row, Store, StoreWriter, is_finished

CAPTIONS, BOXES, SAYINGS = "captions", "boxes", "sayings"
"""Sources of questions, beside people: COCO-QA, boxes, and what captions say, see `caption_questions`."""
THIS, IS_THIS = "what is this", "is this a"
"""Types of the questions that point."""
MOST = {
    "is there a": 2,
    "how many": 2,
    "which is larger": 1,
    "is the": 1,
    "what is to the": 1,
    "what is on the": 1,
    "what color is the": 2,
}
_TUNED_SHARE = 0.04
_TEXTS_TOGETHER = 2048


@dataclass(frozen=True, slots=True)
class QuestionScale:
    """most: question type → how many a photo's boxes give at most. sayings: how many its captions give at most beside
    COCO-QA's. pointing: boxes of each photo that are pointed at.
    smallest: boxes of less than this share of the photo are not asked about. least_count: how often an answer must be
    the most frequent one to be given at all. max_tokens: of a question. limit: photos, at most."""

    most: Mapping[str, int] = field(default_factory=lambda: dict(MOST))
    sayings: int = 8
    pointing: int = 1
    smallest: float = 0.004
    least_count: int = 3
    max_tokens: int = 24
    limit: int | None = None
    seed: int = 0

    def about(self) -> dict[str, Any]:
        """What stored questions depend on."""
        return asdict(self) | {"most": dict(self.most)}


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """A question about one photo. pointed_xyxy: what the one who asks points at, or nothing."""

    image: str
    text: str
    source: str
    question_type: str
    answer_type: str
    answers: tuple[str, ...]
    pointed_xyxy: tuple[float, float, float, float] | None = None


def write_questions(coco: Store, out: Path, scale: QuestionScale, progress: Progress) -> list[str]:
    """Write out/questions with answers and words beside it, unless it is there; the photos that are asked about."""
    if coco.kind != KIND:
        raise InvalidFile(coco.folder, f"holds {coco.kind}, not {KIND}", "make one with `saywhere build coco`")
    if not is_finished(out / QUESTIONS):
        _write(coco, out, scale, progress)
    made = Store(out / QUESTIONS, QUESTIONS_KIND)
    if made.about != scale.about():
        raise InvalidFile(made.folder, "was made with other settings", "choose another folder, or delete this one")
    return [row.key for row in made]


def _write(coco: Store, out: Path, scale: QuestionScale, progress: Progress) -> None:
    rows = [row for row in coco if _is_asked(row, scale)][: scale.limit]
    if not rows:
        raise InvalidFile(coco.folder, "has no photo with questions")
    splits = {row.key: photo_split(row) for row in rows}
    asked: dict[str, list[Asking]] = {row.key: list(_told(row, splits[row.key])) for row in rows}
    for number, one in enumerate(box_askings(rows, scale)):
        asked[one.image].append(one)
        progress("asking about boxes", number + 1, 0)
    for one in sayings([row for row in rows if splits[row.key] == TRAIN], scale, progress):
        asked[one.image].append(one)
    learnt = [one for photo, some in asked.items() if splits[photo] == TRAIN for one in some]
    # What captions say is asked for in words of its own only as far as others give such answers.
    given = [one.answers for one in learnt if one.source != SAYINGS]
    if not given:
        raise InvalidFile(coco.folder, "has no question to learn from: all its photos are held out")
    answers = AnswerVocabulary.of(given, scale.least_count)
    answers.save(out / ANSWERS)
    with write_atomic(out / WORDS) as file:
        file.write(msgspec.json.encode(sorted({word for one in learnt for word in plain_words(one.text)})))
    held = {row.key: row["split"] == "validation" for row in rows}
    with StoreWriter(out / QUESTIONS, QUESTIONS_KIND, QUESTIONS_FIELDS, scale.about(), resume=False) as writer:
        for number, (photo, some) in enumerate(asked.items(), 1):
            stored = [msgspec.to_builtins(_stored(one, answers)) for one in some if plain_words(one.text)]
            writer.add(photo, split=splits[photo], asked=stored, held=held[photo])
            progress("writing questions", number, len(asked))


def write_texts(out: Path, encoder: TokenEncoder, scale: QuestionScale, progress: Progress) -> None:
    """Write out/texts, or go on with it: every question about a photo of out/places as the encoder reads it."""
    texts: dict[str, None] = {}
    places = Store(out / PLACES, REGIONS)
    for row in Store(out / QUESTIONS, QUESTIONS_KIND):
        texts.update((one[0], None) for one in (row["asked"] if row.key in places else ()))
    with StoreWriter(out / TEXTS, TEXTS_KIND, TEXTS_FIELDS, {"max_tokens": scale.max_tokens}) as writer:
        waiting = [text for text in texts if text not in writer]
        # Texts of like length are read together.
        waiting.sort(key=len)
        done = len(texts) - len(waiting)
        for first in range(0, len(waiting), _TEXTS_TOGETHER):
            some = waiting[first : first + _TEXTS_TOGETHER]
            for text, states in zip(some, encoder.states(some, most=scale.max_tokens), strict=True):
                writer.add(text, states=states.astype(np.float16))
            progress("reading questions", done + first + len(some), len(texts))


def _is_asked(row: Row, scale: QuestionScale) -> bool:
    return bool(row["questions"] or row["cocoqa"] or (scale.sayings and row["captions"]))


def photo_split(row: Row) -> str:
    """ "test" for photos of VQA's validation questions; "tune" for the store's own validation photos and some more."""
    if any(one["split"] != "train" for one in row["questions"] or ()):
        return TEST
    place = int.from_bytes(hashlib.sha256(f"answers {row.key}".encode()).digest()[:8], "big")
    return TUNE if row["split"] == "validation" or place < _TUNED_SHARE * 2**64 else TRAIN


def _told(row: Row, split: str) -> Iterator[Asking]:
    """What people and captions ask of a photo. Of a test photo, people's training questions are left out; to choose and
    calibrate by, those of other sets than VQA."""
    for one in row["questions"] or ():
        if _counts(one, split):
            yield Asking(
                row.key,
                one["question"],
                HUMAN,
                one["question_type"],
                one["answer_type"],
                tuple(one["answers"]),
            )
    for one in row["cocoqa"] or ():
        text = one["question"].strip().rstrip("?").strip()
        kind = "number" if one["kind"] == "number" else "other"
        yield Asking(row.key, f"{text[:1].upper()}{text[1:]}?", CAPTIONS, one["kind"], kind, (one["answer"],))


def _counts(question: Mapping[str, Any], split: str) -> bool:
    """question: of people, as the store has it; without a source it is VQA's."""
    if split == TEST:
        return bool(question["split"] != "train")
    return split == TRAIN or question.get("source", VQA) == VQA


def box_askings(rows: Sequence[Row], scale: QuestionScale) -> Iterator[Asking]:
    """Questions about the boxes of photos, some of which point."""
    rng = np.random.default_rng(scale.seed)
    boxes = (
        ClassBox(row.key, COCO_CLASSES[kind], tuple(box))
        for row in rows
        if row["boxes_xyxy"] is not None
        for box, kind in zip(np.asarray(row["boxes_xyxy"]).tolist(), np.asarray(row["classes"]).tolist(), strict=True)
    )
    photos = by_photo(boxes)
    captions = {row.key: row["captions"] or () for row in rows}
    for one in ask(photos, rng, captions, AskSettings(most=scale.most, smallest=scale.smallest)):
        yield Asking(one.image, one.text, BOXES, one.question_type, one.answer_type, (one.answer,))
    for photo in photos:
        yield from pointing_questions(photo, scale, rng)


def sayings(rows: Sequence[Row], scale: QuestionScale, progress: Progress) -> Iterator[Asking]:
    """Questions about what the captions of photos say."""
    photos = [(row.key, row["captions"]) for row in rows if row["captions"]] if scale.sayings else []
    rng = np.random.default_rng(scale.seed)
    for photo, one in ask_captions(photos, rng, most_in_all=scale.sayings, progress=progress):
        yield Asking(photo, one.text, SAYINGS, one.question_type, one.answer_type, one.answers[:1])


def pointing_questions(photo: PhotoBoxes, scale: QuestionScale, rng: np.random.Generator) -> Iterator[Asking]:
    """ "What is this?" and "Is this a dog?" of some boxes of a photo."""
    clear = photo.clear(scale.smallest)
    boxes = [(name, box) for name, alike in clear.items() for box in alike]
    for place in rng.permutation(len(boxes))[: scale.pointing].tolist():
        name, box = boxes[place]
        yield Asking(photo.image, "What is this?", BOXES, THIS, "other", (name,), box)
        # Half of the wrong names are of things that are there as well, so that the photo alone does not give it away.
        beside = [other for other in clear if other != name]
        wrong = beside if beside and rng.random() < 0.5 else [other for other in coco_aliases() if other != name]
        is_it = bool(rng.random() < 0.5)
        asked = name if is_it else wrong[int(rng.integers(len(wrong)))]
        text = f"Is this {'an' if asked[0] in 'aeiou' else 'a'} {asked}?"
        yield Asking(photo.image, text, BOXES, IS_THIS, "yes/no", ("yes" if is_it else "no",), box)


def _stored(one: Asking, answers: AnswerVocabulary) -> StoredQuestion:
    scores = answers.targets(one.answers)
    targets: Any = tuple((int(place), round(float(scores[place]), 2)) for place in np.flatnonzero(scores))
    kept = one.answers if one.source == HUMAN else one.answers[:1]
    kinds = (one.question_type, one.answer_type)
    return StoredQuestion(one.text, one.source, *kinds, kept, targets, one.pointed_xyxy)
