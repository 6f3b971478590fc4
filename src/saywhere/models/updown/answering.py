"""Answers in words: questions about images, and about where one points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import Vocabulary, plain_words
from saywhere.models.common.answers import AnswerScore, AnswerVocabulary, pointing_weights, question_words
from saywhere.models.common.batches import padded
from saywhere.models.face import Answer
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown.batch import collate_features
from saywhere.models.updown.vqa import UpDnVqa

RANKED = 5
_BATCH = 64


class Answerer:
    """A network with what its ids mean. reads_states: it looks at vectors in the space of texts, not at states; second:
    and at no second look."""

    reads_states = False
    second = None

    def __init__(
        self, network: UpDnVqa, vocabulary: Vocabulary | None = None, answers: AnswerVocabulary | None = None
    ) -> None:
        """vocabulary, answers: those attached to the network unless given."""
        words, known = vocabulary or network.vocabulary, answers or network.answers
        if words is None or known is None:
            raise InvalidValue("network", "does not know what its ids mean", "attach or give the vocabularies")
        self.vocabulary, self.answers = words, known
        self.network = network.attach(words, known).eval()

    @property
    def region_size(self) -> int:
        return self.network.config.region_size

    def score(
        self, image: RegionFeatures, question: str, pointed: ArrayLike | None = None, answer: str = ""
    ) -> UpDnAnswerScore:
        """How likely an answer is, as a function of the image's regions. answer: by default the one that is given."""
        return UpDnAnswerScore(self, image, question, pointed, answer)

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
        words = [question_words(question, i) for i, question in enumerate(questions)]
        given = [None] * len(images) if pointed is None else pointed
        weights = [
            np.ones(len(image), np.float32) if one is None else one
            for i, image in enumerate(images)
            for one in [pointing_weights(given[i], len(image), i)]
        ]
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


class UpDnAnswerScore(AnswerScore):
    """The logit of an UpDn network's answer."""

    def __init__(
        self, answerer: Answerer, image: RegionFeatures, question: str, pointed: ArrayLike | None, answer: str
    ) -> None:
        """pointed: see `Answerer.answer`. answer: empty for the one that is given."""
        [given] = answerer.answer([image], [question], [pointed])
        super().__init__(answerer.answers, answer or given.text, image, given)
        self.network = answerer.network
        device = self.network.device
        words = plain_words(question)[: self.network.config.max_words]
        self.question = torch.tensor([answerer.vocabulary.encode(words).ids], device=device)
        self.features, self.boxes = (torch.tensor(one, device=device) for one in (image.features, image.boxes_xyxy))
        weights = None if pointed is None else np.asarray(pointed, dtype=np.float32)
        self.pointed = None if weights is None else torch.tensor(weights, device=device)

    def __call__(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:  # noqa: ARG002 - as the protocol has it
        """(n,) the logit for each of (n, r, f) versions of the features, of which (n, r) are present."""
        rows = len(features)
        answered = self.network(
            features,
            present,
            self.question.expand(rows, -1),
            boxes=self.boxes.expand(rows, -1, -1),
            pointed=None if self.pointed is None else self.pointed.expand(rows, -1),
        )
        logits: Tensor = answered.logits[:, self.answer]
        return logits


def open_answerer(folder: str | Path) -> Answerer:
    """What `UpDnVqa.save_pretrained` wrote, ready to answer."""
    return Answerer(UpDnVqa.from_pretrained(folder))
