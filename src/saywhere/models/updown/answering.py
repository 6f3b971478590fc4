"""Answers in words: questions about images, and about where one points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import Vocabulary
from saywhere.language.words import plain_words
from saywhere.models.common.batches import padded
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown.answers import AnswerVocabulary
from saywhere.models.updown.batch import collate_features
from saywhere.models.updown.vqa import UpDnVqa

RANKED = 5
_BATCH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """text: the likeliest answer. probability: the sigmoid of its logit; those of all answers need not sum to 1.

    ranked: the five likeliest with their probabilities, best first. attention: (r,) over the image's regions.
    unknown: words of the question that the network does not know. unread: its words beyond the limit, if any.
    """

    text: str
    probability: float
    ranked: tuple[tuple[str, float], ...]
    attention: NDArray[np.float32]
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class Answerer:
    """A network with what its ids mean."""

    def __init__(
        self, network: UpDnVqa, vocabulary: Vocabulary | None = None, answers: AnswerVocabulary | None = None
    ) -> None:
        """vocabulary, answers: those attached to the network unless given."""
        words, known = vocabulary or network.vocabulary, answers or network.answers
        if words is None or known is None:
            raise InvalidValue("network", "does not know what its ids mean", "attach or give the vocabularies")
        self.vocabulary, self.answers = words, known
        self.network = network.attach(words, known).eval()

    def answer(
        self,
        images: Sequence[RegionFeatures],
        questions: Sequence[str],
        pointed: Sequence[ArrayLike | None] | None = None,
    ) -> list[Answer]:
        """An answer to each question about the image of the same number.

        pointed: for each image nothing, or (r,) ≥ 0, how much each of its regions is pointed at. Signs are not read. As
        in UpDn, a question is cut after `config.max_words` words (14); the answer's `unread` names the others.
        """
        if len(images) != len(questions) or (pointed is not None and len(pointed) != len(images)):
            counts = f"{len(images)} images, {len(questions)} questions"
            raise InvalidValue("questions", f"{counts}, {len(images if pointed is None else pointed)} pointings")
        words = [_words(question, i) for i, question in enumerate(questions)]
        weights = [_pointed(None if pointed is None else pointed[i], image, i) for i, image in enumerate(images)]
        found: list[Answer] = []
        for first in range(0, len(images), _BATCH):
            part = slice(first, first + _BATCH)
            found += self._answered(images[part], words[part], weights[part])
        return found

    def _answered(
        self, images: Sequence[RegionFeatures], words: Sequence[list[str]], weights: Sequence[NDArray[np.float32]]
    ) -> list[Answer]:
        network, most = self.network, self.network.config.max_words
        regions, boxes, present = collate_features(images, network.config.region_size)
        ids = [np.array(self.vocabulary.encode(one[:most]).ids, dtype=np.int64) for one in words]
        parts = (part.to(network.device) for part in (regions, present, padded(ids), boxes, padded(weights)))
        with torch.no_grad():
            seen, there, questions, placed, pointed = parts
            answered = network(seen, there, questions, boxes=placed, pointed=pointed)
        chances, best = answered.logits.sigmoid().topk(min(RANKED, len(self.answers)), dim=1)
        return [
            self._worded(one, ids[i], chances[i], best[i], answered.attention[i, : len(images[i])])
            for i, one in enumerate(words)
        ]

    def _worded(
        self, words: list[str], ids: NDArray[np.int64], chances: Tensor, best: Tensor, attention: Tensor
    ) -> Answer:
        ranked = tuple(zip(map(self.answers.text, best.tolist()), chances.tolist(), strict=True))
        read = zip(words, ids.tolist(), strict=False)
        unknown = tuple(dict.fromkeys(word for word, i in read if i == self.vocabulary.unknown_id))
        return Answer(*ranked[0], ranked, attention.cpu().numpy(), unknown, tuple(words[len(ids) :]))


def _words(question: str, number: int) -> list[str]:
    if not isinstance(question, str):
        raise InvalidValue(f"question {number}", f"is {question!r}, not text")
    words = plain_words(question)
    if not words:
        raise InvalidValue(f"question {number}", f"{question!r} has no word")
    return words


def _pointed(values: ArrayLike | None, image: RegionFeatures, number: int) -> NDArray[np.float32]:
    """(r,) weights, all 1 if nothing is pointed at."""
    if values is None:
        return np.ones(len(image), dtype=np.float32)
    weights = np.asarray(values, dtype=np.float32)
    if weights.shape != (len(image),):
        raise InvalidValue(f"pointing {number}", f"has shape {weights.shape}, but its image has {len(image)} regions")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InvalidValue(f"pointing {number}", "holds a weight that is negative, NaN or infinite")
    if not weights.any():
        raise InvalidValue(f"pointing {number}", "points at no region", "give none to point at all of them")
    return weights
