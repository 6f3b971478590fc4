"""Questions or captions made ready for training: prepared folders of words, answers and human importance.

Vocabularies come from the split "train" alone; answers.json says what the answer ids mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from saywhere.language.vocabulary import owned_words, plain_words, vocabulary_of
from saywhere.models.common.answers import LEAST_COUNT, AnswerVocabulary
from saywhere.models.prepared import (
    MOST_WORDS,
    NO_WORDS,
    TRAIN,
    PreparedFolder,
    PreparedIndex,
    PreparedItems,
    Skipped,
    save_images,
    save_items,
    usable_items,
)
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown.batch import CaptionItem, QuestionItem

NO_ANSWERS = "it has no answer"
NOT_KNOWN = "none of its answers is in the vocabulary"
BAD_IMPORTANCE = "its importance is not one number in [0, 1], or NaN, for each region of its image"
BAD_POINTING = "what it points at is not one number in [0, 1] for each region of its image, or nothing"
BAD_PLACE = "one of its visual words is not in its text, or twice"

_ANSWERS = "answers.json"
_QUESTION_FIELDS = {"text": "json", "question_type": "json", "answer_type": "json", "answers": "json"}
_QUESTION_FIELDS |= {"words": "int32", "importance": "float32", "pointed": "float32", "free_view": "float32"}
_QUESTION_FIELDS |= {"target_ids": "int32", "target_scores": "float32"}
# visual: (v, r) the importance of the regions for each visual word; places: (v,) which words these are.
_CAPTION_FIELDS = {"text": "json", "words": "int32", "places": "int32", "visual": "float32"}


@dataclass(frozen=True, slots=True, eq=False)
class PreparedQuestion:
    """A question to store. image: its name in `images`. answers: people's, or the true one alone.

    importance: (r,) human importance of each region of its image, in [0, 1], NaN for a region of which people say
    nothing; None: no human attention.
    pointed: (r,) how much the one who asks points at each region, in [0, 1]; None: at nothing.
    free_view: as importance, of people who look at the image without the question.
    """

    id: str
    image: str
    split: str
    text: str
    question_type: str
    answer_type: str
    answers: tuple[str, ...]
    importance: NDArray[Any] | None = None
    pointed: NDArray[Any] | None = None
    free_view: NDArray[Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PreparedCaption:
    """A caption to store. image: its name in `images`.

    visual: indices of visual words in `text.split()`, each with the importance (r,) of its image's regions in [0, 1].
    """

    id: str
    image: str
    split: str
    text: str
    visual: tuple[tuple[int, NDArray[Any]], ...] = ()


def save_questions(
    folder: str | Path,
    images: Mapping[str, RegionFeatures],
    questions: Sequence[PreparedQuestion],
    about: Mapping[str, Any],
    least_count: int = LEAST_COUNT,
    *,
    max_words: int = 14,
    least_word_count: int = 1,
) -> None:
    """Write a folder that `Questions` reads.

    least_count: how often an answer must be right in training to be one that can be given. Training questions without
    any such answer are left out; those of other splits stay, and no answer to them is right. max_words: words kept of
    a question. least_word_count: how often a word must occur in training to be known.
    """
    images_saved = save_images(folder, images, (one.image for one in questions))
    usable, skipped = usable_items(questions, images_saved, _unfit_question)
    answers = AnswerVocabulary.of((one.answers for one in usable if one.split == TRAIN), least_count)
    scored = [(one, answers.targets(one.answers)) for one in usable]
    kept = [(one, scores) for one, scores in scored if one.split != TRAIN or scores.any()]
    unknown = [one for one, scores in scored if not scores.any()]
    skipped += [Skipped(one.id, NOT_KNOWN) for one in unknown if one.split == TRAIN]
    vocabulary = vocabulary_of([one.text for one, _ in kept if one.split == TRAIN], least_word_count, MOST_WORDS)
    rows = []
    for one, scores in kept:
        known = np.flatnonzero(scores)
        row = {name: getattr(one, name) for name in _QUESTION_FIELDS if hasattr(one, name)}
        words = vocabulary.encode(plain_words(one.text)[:max_words]).ids
        rows.append((one, {**row, "words": words, "target_ids": known, "target_scores": scores[known]}))
    answers.save(Path(folder) / _ANSWERS)
    counts = {
        "given": len(questions),
        "kept": len(kept),
        "hinted": sum(one.importance is not None for one, _ in kept),
        "cut": sum(len(plain_words(one.text)) > max_words for one, _ in kept),
        "unanswerable": sum(one.split != TRAIN for one in unknown),
    }
    saved = PreparedIndex(about, skipped, counts, max_words)
    save_items(folder, Questions.kind, _QUESTION_FIELDS, rows, images_saved, vocabulary, saved)


def save_captions(
    folder: str | Path,
    images: Mapping[str, RegionFeatures],
    captions: Sequence[PreparedCaption],
    about: Mapping[str, Any],
    least_word_count: int = 5,
    *,
    max_words: int = 20,
) -> None:
    """Write a folder that `Captions` reads. least_word_count: rarer words are unknown. max_words: kept of a caption."""
    images_saved = save_images(folder, images, (one.image for one in captions))
    kept, skipped = usable_items(captions, images_saved, _unfit_caption)
    vocabulary = vocabulary_of([one.text for one in kept if one.split == TRAIN], least_word_count, MOST_WORDS)
    rows = []
    counts = {"given": len(captions), "kept": len(kept), "hinted": 0, "cut": 0, "visual_cut": 0}
    for one in kept:
        words = owned_words(one.text)
        place_of = {owner: place for place, (_, owner) in reversed(list(enumerate(words)))}
        visual = {place_of[index]: importance for index, importance in one.visual if place_of[index] < max_words}
        counts["hinted"] += bool(visual)
        counts["cut"] += len(words) > max_words
        counts["visual_cut"] += len(one.visual) - len(visual)
        row: dict[str, Any] = {"text": one.text}
        row["words"] = vocabulary.encode([word for word, _ in words[:max_words]]).ids
        row |= {"places": list(visual), "visual": np.array(list(visual.values()), dtype=np.float32)}
        rows.append((one, row))
    saved = PreparedIndex(about, skipped, counts, max_words)
    save_items(folder, Captions.kind, _CAPTION_FIELDS, rows, images_saved, vocabulary, saved)


def _unfit_question(one: PreparedQuestion, regions: int) -> str:
    if not plain_words(one.text):
        return NO_WORDS
    if not one.answers:
        return NO_ANSWERS
    if any(some is not None and not _is_human(some, regions) for some in (one.importance, one.free_view)):
        return BAD_IMPORTANCE
    if one.pointed is not None and not (_is_importance(one.pointed, regions) and np.any(one.pointed)):
        return BAD_POINTING
    return ""


def _unfit_caption(one: PreparedCaption, regions: int) -> str:
    if not plain_words(one.text):
        return NO_WORDS
    owners = {owner for _, owner in owned_words(one.text)}
    places = [index for index, _ in one.visual]
    if not set(places) <= owners or len(set(places)) < len(places):
        return BAD_PLACE
    return "" if all(_is_human(importance, regions) for _, importance in one.visual) else BAD_IMPORTANCE


def _is_importance(values: NDArray[Any], regions: int) -> bool:
    # NaN is neither ≥ 0 nor ≤ 1.
    return np.shape(values) == (regions,) and bool(np.all((np.asarray(values) >= 0) & (np.asarray(values) <= 1)))


def _is_human(values: NDArray[Any], regions: int) -> bool:
    """Importances that people gave, NaN where they say nothing of a region, but not everywhere."""
    known = ~np.isnan(np.asarray(values, dtype=np.float64))
    return bool(known.any()) and _is_importance(np.where(known, values, 0.0), regions)


class Questions(PreparedFolder[QuestionItem]):
    """A folder that `save_questions` wrote."""

    kind: ClassVar[str] = "questions"
    files: ClassVar[tuple[str, ...]] = (*PreparedFolder.files, _ANSWERS)

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self.answers = AnswerVocabulary.load(self.folder / _ANSWERS)

    def split(self, name: str, most: int | None = None) -> QuestionItems:
        """The questions of one split, or the first `most` of them."""
        return QuestionItems(self, self.indices(name)[:most])

    def item(self, index: int) -> QuestionItem:
        row, image = self.rows[index], self.image_row(index)
        targets = np.zeros(len(self.answers), dtype=np.float32)
        targets[row["target_ids"]] = row["target_scores"]
        regions, boxes = image["regions"].astype(np.float32), np.array(image["boxes"])
        # Copies: torch takes no array that it may not write to.
        importance, pointed = (None if row[name] is None else np.array(row[name]) for name in ("importance", "pointed"))
        return QuestionItem(regions, boxes, row["words"].astype(np.int64), targets, importance, pointed, index)

    def question(self, index: int) -> PreparedQuestion:
        """One question as it was given."""
        row = self.rows[index]
        kinds, answers = (row["question_type"], row["answer_type"]), tuple(row["answers"])
        return PreparedQuestion(
            *(row.key, self.image_name(index), self.split_name(index), row["text"], *kinds, answers),
            row["importance"],
            row["pointed"],
            # Folders that were made before had no such field.
            row["free_view"] if "free_view" in self.rows.fields else None,
        )

    def answer_type(self, index: int) -> str:
        return str(self.rows[index]["answer_type"])


class Captions(PreparedFolder[CaptionItem]):
    """A folder that `save_captions` wrote."""

    kind: ClassVar[str] = "captions"

    def split(self, name: str, most: int | None = None) -> CaptionItems:
        """The captions of one split, or the first `most` of them."""
        return CaptionItems(self, self.indices(name)[:most])

    def item(self, index: int) -> CaptionItem:
        row, image = self.rows[index], self.image_row(index)
        visual = tuple(zip(row["places"].tolist(), np.array(row["visual"]), strict=True))
        regions, boxes = image["regions"].astype(np.float32), np.array(image["boxes"])
        return CaptionItem(regions, boxes, row["words"].astype(np.int64), visual, index)

    def caption(self, index: int) -> PreparedCaption:
        """One caption as it was given, but for visual words beyond the limit of words."""
        row = self.rows[index]
        owners = [owner for _, owner in owned_words(row["text"])]
        visual = tuple((owners[place], shares) for place, shares in zip(row["places"], row["visual"], strict=True))
        return PreparedCaption(row.key, self.image_name(index), self.split_name(index), row["text"], visual)


class QuestionItems(PreparedItems[Questions, QuestionItem]):
    """Some questions of a folder."""

    def question(self, index: int) -> PreparedQuestion:
        return self.folder.question(self.indices[index])


class CaptionItems(PreparedItems[Captions, CaptionItem]):
    """Some captions of a folder."""

    def caption(self, index: int) -> PreparedCaption:
        return self.folder.caption(self.indices[index])
