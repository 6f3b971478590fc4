"""Questions or captions made ready for training, in a folder that is read by memory map.

regions.npy         all images' regions, float16        vocabulary.json     what the word ids mean
region_boxes.npy    their boxes, float32                answers.json        what the answer ids mean (questions)
words.npy, importance.npy, target_ids.npy, target_scores.npy                all items' numbers, one after another
index.json          what lies where, what was left out and why; written last, so that a torn save shows

An item that cannot be used is left out, named and counted. Vocabularies come from the split "train" alone; other splits
may have any name.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from saywhere.core.errors import InvalidValue
from saywhere.language.words import owned_words, plain_words, vocabulary_of
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown.answers import LEAST_COUNT, AnswerVocabulary
from saywhere.models.updown.batch import CaptionItem, QuestionItem
from saywhere.models.updown.rows import RowFolder, RowWriter, Saved, Skipped, Told, started
from saywhere.models.updown.store import SavedRegions, save_regions

TRAIN = "train"
MOST_WORDS = 50_000

NO_WORDS = "its text has no word"
NO_ANSWERS = "it has no answer"
NOT_KNOWN = "none of its answers is in the vocabulary"
BAD_IMPORTANCE = "its importance is not one number in [0, 1] for each region of its image"
BAD_POINTING = "what it points at is not one number in [0, 1] for each region of its image, or nothing"
BAD_PLACE = "one of its visual words is not in its text, or twice"
TWICE = "its id was used before"

_IMPORTANCE, _POINTED = 0, 1
"""Where the two vectors of a question are kept among those of its row."""

_Item = TypeVar("_Item", bound=Told)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedQuestion:
    """A question to store. image: its name in `images`. answers: people's, or the true one alone.

    importance: (r,) human importance of each region of its image, in [0, 1]; None: no human attention.
    pointed: (r,) how much the one who asks points at each region, in [0, 1]; None: at nothing.
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
    target = started(folder)
    regions = save_regions(target, images, dict.fromkeys(one.image for one in questions))
    usable, skipped = _usable(questions, regions, _unfit_question)
    answers = AnswerVocabulary.of((one.answers for one in usable if one.split == TRAIN), least_count)
    scored = [(one, answers.targets(one.answers)) for one in usable]
    kept = [(one, scores) for one, scores in scored if one.split != TRAIN or scores.any()]
    unknown = [one for one, scores in scored if not scores.any()]
    skipped += [Skipped(one.id, NOT_KNOWN) for one in unknown if one.split == TRAIN]
    vocabulary = vocabulary_of([one.text for one, _ in kept if one.split == TRAIN], least_word_count, MOST_WORDS)
    writer = RowWriter(regions)
    cut = 0
    for one, scores in kept:
        words = plain_words(one.text)
        cut += len(words) > max_words
        beside = {_IMPORTANCE: one.importance, _POINTED: one.pointed}
        visual = {place: values for place, values in beside.items() if values is not None}
        ids = vocabulary.encode(words[:max_words]).ids
        writer.add(one, ids, visual, (one.question_type, one.answer_type), one.answers, scores)
    answers.save(target / "answers.json")
    counts = {
        "given": len(questions),
        "kept": len(kept),
        "hinted": sum(one.importance is not None for one, _ in kept),
        "cut": cut,
        "unanswerable": sum(one.split != TRAIN for one in unknown),
    }
    writer.save(target, vocabulary, Saved("questions", max_words, skipped, counts, dict(about)))


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
    target = started(folder)
    regions = save_regions(target, images, dict.fromkeys(one.image for one in captions))
    kept, skipped = _usable(captions, regions, _unfit_caption)
    learnt = [one.text for one in kept if one.split == TRAIN]
    if not learnt:
        raise InvalidValue("captions", f"none of the split {TRAIN!r} can be used", _reasons(skipped))
    vocabulary = vocabulary_of(learnt, least_word_count, MOST_WORDS)
    writer = RowWriter(regions)
    cut = visual_cut = hinted = 0
    for one in kept:
        words = owned_words(one.text)
        places = {owner: place for place, (_, owner) in reversed(list(enumerate(words)))}
        visual = {places[index]: importance for index, importance in one.visual if places[index] < max_words}
        cut += len(words) > max_words
        visual_cut += len(one.visual) - len(visual)
        hinted += bool(visual)
        writer.add(one, vocabulary.encode([word for word, _ in words[:max_words]]).ids, visual)
    counts = {"given": len(captions), "kept": len(kept), "hinted": hinted, "cut": cut, "visual_cut": visual_cut}
    writer.save(target, vocabulary, Saved("captions", max_words, skipped, counts, dict(about)))


def _usable(
    items: Sequence[_Item], regions: SavedRegions, unfit: Callable[[_Item, int], str]
) -> tuple[list[_Item], list[Skipped]]:
    """The items that can be stored, and the others with the first reason against each."""
    sizes = {image.name: len(image) for image in regions.images}
    usable: list[_Item] = []
    skipped: list[Skipped] = []
    seen: set[str] = set()
    for one in items:
        reason = TWICE if one.id in seen else regions.bad.get(one.image) or _unfit_text(one.text)
        reason = reason or unfit(one, sizes[one.image])
        seen.add(one.id)
        if reason:
            skipped.append(Skipped(one.id, reason))
        else:
            usable.append(one)
    return usable, skipped


def _unfit_text(text: str) -> str:
    return "" if plain_words(text) else NO_WORDS


def _unfit_question(one: PreparedQuestion, regions: int) -> str:
    if not one.answers:
        return NO_ANSWERS
    if one.importance is not None and not _is_importance(one.importance, regions):
        return BAD_IMPORTANCE
    if one.pointed is not None and not (_is_importance(one.pointed, regions) and np.any(one.pointed)):
        return BAD_POINTING
    return ""


def _unfit_caption(one: PreparedCaption, regions: int) -> str:
    owners = {owner for _, owner in owned_words(one.text)}
    places = [index for index, _ in one.visual]
    if not set(places) <= owners or len(set(places)) < len(places):
        return BAD_PLACE
    return "" if all(_is_importance(importance, regions) for _, importance in one.visual) else BAD_IMPORTANCE


def _is_importance(values: NDArray[Any], regions: int) -> bool:
    # NaN is neither ≥ 0 nor ≤ 1.
    return np.shape(values) == (regions,) and bool(np.all((np.asarray(values) >= 0) & (np.asarray(values) <= 1)))


def _reasons(skipped: Sequence[Skipped]) -> str:
    return "; ".join(f"{count} × {reason}" for reason, count in Counter(one.reason for one in skipped).most_common())


class Questions(RowFolder):
    """A folder that `save_questions` wrote."""

    kind: ClassVar[str] = "questions"

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self.answers = AnswerVocabulary.load(self.folder / "answers.json")
        self.fingerprint = hashlib.sha256((self.fingerprint + self.answers.fingerprint).encode()).hexdigest()[:16]

    def split(self, name: str, most: int | None = None) -> QuestionItems:
        """The questions of one split, or the first `most` of them."""
        return QuestionItems(self, self._chosen(name, most))

    def item(self, index: int) -> QuestionItem:
        """One question as the network reads it."""
        row = self._index.rows[index]
        targets = np.zeros(len(self.answers), dtype=np.float32)
        where = slice(*row.targets)
        targets[self._arrays["target_ids"][where]] = self._arrays["target_scores"][where]
        regions, boxes, beside = self.store.regions(row.image), self.store.boxes(row.image), self._visual(row)
        vectors = beside.get(_IMPORTANCE), beside.get(_POINTED)
        return QuestionItem(regions, boxes, self._words(row), targets, *vectors, index)

    def question(self, index: int) -> PreparedQuestion:
        """One question as it was given."""
        row = self._index.rows[index]
        beside = self._visual(row)
        vectors = beside.get(_IMPORTANCE), beside.get(_POINTED)
        return PreparedQuestion(
            *(row.id, self._image_name(row), row.split, row.text, *row.kinds, row.answers), *vectors
        )

    def answer_type(self, index: int) -> str:
        return self._index.rows[index].kinds[1]


class Captions(RowFolder):
    """A folder that `save_captions` wrote."""

    kind: ClassVar[str] = "captions"

    def split(self, name: str, most: int | None = None) -> CaptionItems:
        """The captions of one split, or the first `most` of them."""
        return CaptionItems(self, self._chosen(name, most))

    def item(self, index: int) -> CaptionItem:
        """One caption as the network reads it."""
        row = self._index.rows[index]
        visual = tuple(self._visual(row).items())
        return CaptionItem(self.store.regions(row.image), self.store.boxes(row.image), self._words(row), visual, index)

    def caption(self, index: int) -> PreparedCaption:
        """One caption as it was given, but for visual words beyond the limit of words."""
        row = self._index.rows[index]
        owners = [owner for _, owner in owned_words(row.text)]
        visual = tuple((owners[place], importance) for place, importance in self._visual(row).items())
        return PreparedCaption(row.id, self._image_name(row), row.split, row.text, visual)


class QuestionItems(Sequence[QuestionItem]):
    """Some questions of a folder, as a map-style data set."""

    def __init__(self, folder: Questions, indices: Sequence[int]) -> None:
        self.folder, self.indices = folder, tuple(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return QuestionItems(self.folder, self.indices[index])
        return self.folder.item(self.indices[index])

    def question(self, index: int) -> PreparedQuestion:
        return self.folder.question(self.indices[index])


class CaptionItems(Sequence[CaptionItem]):
    """Some captions of a folder, as a map-style data set."""

    def __init__(self, folder: Captions, indices: Sequence[int]) -> None:
        self.folder, self.indices = folder, tuple(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return CaptionItems(self.folder, self.indices[index])
        return self.folder.item(self.indices[index])

    def caption(self, index: int) -> PreparedCaption:
        return self.folder.caption(self.indices[index])
