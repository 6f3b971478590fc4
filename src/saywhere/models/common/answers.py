"""Questions to a network, as they are checked, and the answers that it can give: those that were right often enough in
training."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core.answers import normalise_answer, soft_scores
from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32
from saywhere.language.vocabulary import JsonFile, plain_words

if TYPE_CHECKING:
    from torch import Tensor

    from saywhere.models.face import Answer
    from saywhere.models.region_features import RegionFeatures

LEAST_COUNT = 9
"""UpDn keeps answers that occur more than 8 times, which leaves 3,129 of VQA v2's."""

_FORMAT = 1


def answer_scores(answers: Sequence[str]) -> dict[str, float]:
    """Normalised answer → soft score of one question.

    Several answers are several people's: 0.3, 0.6, 0.9 or 1 (`saywhere.core.answers.soft_scores`). One answer alone is
    the truth, as in questions made from data: it scores 1.
    """
    return soft_scores(answers) if len(answers) != 1 else {normalise_answer(answers[0]): 1.0}


@dataclass(frozen=True)
class AnswerVocabulary(JsonFile):
    """texts: answers as `saywhere.core.answers.normalise_answer` gives them, no two alike; answer i has id i."""

    texts: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(self.texts))
        if not self.texts:
            raise InvalidValue("answer vocabulary", "has no answer")
        for text in self.texts:
            if not isinstance(text, str) or not text.strip():
                raise InvalidValue("answer vocabulary", f"{text!r} is not an answer")
        object.__setattr__(self, "_ids", {text: i for i, text in enumerate(self.texts)})
        if len(self._ids) != len(self.texts):
            twice = next(text for text, count in Counter(self.texts).items() if count > 1)
            raise InvalidValue("answer vocabulary", f"lists {twice!r} twice")

    @classmethod
    def of(cls, answers: Iterable[Sequence[str]], least_count: int = LEAST_COUNT) -> AnswerVocabulary:
        """From the answers to each training question: those that are some question's most frequent one often enough.

        Among equally frequent ones the first given counts. Ordered by frequency, then by letters.
        """
        counts: Counter[str] = Counter()
        for given in answers:
            best = Counter(filter(None, map(normalise_answer, given))).most_common(1)
            counts.update(text for text, _ in best)
        frequent = sorted((text for text, n in counts.items() if n >= least_count), key=lambda t: (-counts[t], t))
        if not frequent:
            reason = f"no answer is the most frequent one of {least_count} questions"
            raise InvalidValue("answer vocabulary", reason, "lower least_count")
        return cls(tuple(frequent))

    def __len__(self) -> int:
        return len(self.texts)

    def __contains__(self, answer: object) -> bool:
        return isinstance(answer, str) and normalise_answer(answer) in self._ids

    def text(self, answer_id: int) -> str:
        if not 0 <= answer_id < len(self.texts):
            raise InvalidValue("answer id", f"{answer_id} is none of 0 … {len(self.texts) - 1}")
        return self.texts[answer_id]

    def targets(self, answers: Sequence[str]) -> NDArray[np.float32]:
        """(len,) the soft score of every answer; all 0 if none of those given is known."""
        found = np.zeros(len(self.texts), dtype=np.float32)
        for text, score in answer_scores(answers).items():
            if text in self._ids:
                found[self._ids[text]] = score
        return found

    def to_json(self) -> str:
        return json.dumps({"format": _FORMAT, "answers": self.texts}, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidValue("answer vocabulary", f"is not JSON: {error}") from error
        if not isinstance(content, dict) or set(content) != {"format", "answers"}:
            raise InvalidValue("answer vocabulary", "is not an object with exactly the keys format, answers")
        if content["format"] != _FORMAT or not isinstance(content["answers"], list):
            raise InvalidValue("answer vocabulary", f"is not a list of answers in format {_FORMAT}")
        return cls(tuple(content["answers"]))


class AnswerScore:
    """The logit of an answer to a question as a function of the features of an image's regions: what is asked, without
    the network that answers.

    features: (r, f). boxes_xyxy: (r, 4). attention: (r,) how much the network looks at each region. word: the answer.
    answer: its id.
    """

    features: Tensor

    def __init__(self, answers: AnswerVocabulary, word: str, image: RegionFeatures, given: Answer) -> None:
        """given: what the network answers by itself."""
        import torch

        if word not in answers:
            raise InvalidValue("answer", f"{word!r} is none that the model knows")
        self.word, self.answer = word, int(answers.targets([word]).argmax())
        self.boxes_xyxy, self.attention = image.boxes_xyxy, torch.from_numpy(given.attention)


def question_words(question: object, number: int) -> list[str]:
    """The words of a question, which must have some."""
    if not isinstance(question, str):
        raise InvalidValue(f"question {number}", f"is {question!r}, not text")
    words = plain_words(question)
    if not words:
        raise InvalidValue(f"question {number}", f"{question!r} has no word")
    return words


def pointing_weights(values: ArrayLike | None, regions: int, number: int) -> Floats32 | None:
    """(r,) how much each region is pointed at; None if nothing is."""
    if values is None:
        return None
    weights = np.asarray(values, dtype=np.float32)
    if weights.shape != (regions,):
        raise InvalidValue(f"pointing {number}", f"has shape {weights.shape}, but its image has {regions} regions")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InvalidValue(f"pointing {number}", "holds a weight that is negative, NaN or infinite")
    if not weights.any():
        raise InvalidValue(f"pointing {number}", "points at no region", "give none to point at all of them")
    return weights
