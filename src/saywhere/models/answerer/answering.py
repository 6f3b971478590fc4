"""Answers in words, each with how likely it is right; or, where that cannot be known, why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32
from saywhere.models.answerer.batch import AskedItem, PhotoItem, collate
from saywhere.models.answerer.judgement import CANNOT_KNOW, Judgement
from saywhere.models.answerer.network import AnswerNet, AnswerOutput
from saywhere.models.answerer.second import SecondReader
from saywhere.models.common.answers import AnswerScore, pointing_weights, question_words
from saywhere.models.face import Answer
from saywhere.models.region_features import RegionFeatures

RANKED = 5
_BATCH = 32
_LETTERS_A_TOKEN = 40
"""More letters than that belong to no token; what is beyond is not even cut into tokens."""


class TokenEncoder(Protocol):
    """Reads texts token by token. `states`: for each text (t, size), at most `most` tokens."""

    @property
    def size(self) -> int: ...

    def states(self, texts: Sequence[str], *, most: int) -> list[Floats32]: ...


def _open_encoder() -> TokenEncoder:
    from saywhere.language.embed import open_token_encoder

    return open_token_encoder()


class QuestionAnswerer:
    """A network with what reads questions for it. reads_states: it looks at places as `state_places` gives them."""

    reads_states = True

    def __init__(self, network: AnswerNet, encoder: Callable[[], TokenEncoder] = _open_encoder) -> None:
        """encoder: opened when the first question is asked."""
        if network.answers is None:
            raise InvalidValue("network", "does not know what its ids mean", "attach the answers")
        self.network, self.answers = network.eval(), network.answers
        self.judgement: Judgement | None = network.judgement
        self._open = encoder

    @property
    def region_size(self) -> int:
        return self.network.config.region_size

    @property
    def second(self) -> SecondReader | None:
        return self.network.second

    @cached_property
    def encoder(self) -> TokenEncoder:
        encoder, reads = self._open(), self.network.config.text_size
        if encoder.size != reads:
            raise InvalidValue("text encoder", f"gives {encoder.size} numbers a token, but the network reads {reads}")
        return encoder

    def answer(
        self,
        images: Sequence[RegionFeatures],
        questions: Sequence[str],
        pointed: Sequence[ArrayLike | None] | None = None,
    ) -> list[Answer]:
        """An answer to each question about the image of the same number.

        pointed: for each image nothing, or (r,) ≥ 0, how much each of its regions is pointed at. A question that cannot
        be answered has `CANNOT_KNOW` as its answer, and the reason; what would have been guessed is in `ranked`.
        """
        given = [None] * len(images) if pointed is None else pointed
        if not len(images) == len(questions) == len(given):
            counts = f"{len(images)} images, {len(questions)} questions, {len(given)} pointings"
            raise InvalidValue("questions", counts)
        found: list[Answer] = []
        for first in range(0, len(images), _BATCH):
            part = slice(first, first + _BATCH)
            found += self._answered(images[part], questions[part], given[part], first)
        return found

    def score(
        self, image: RegionFeatures, question: str, pointed: ArrayLike | None = None, answer: str = ""
    ) -> QuestionScore:
        """How likely an answer is, as a function of the image's regions. answer: by default the likeliest."""
        return QuestionScore(self, image, question, pointed, answer)

    def item(self, image: RegionFeatures, question: str, pointed: ArrayLike | None, number: int = 0) -> PhotoItem:
        """One question as the network reads it; what is wrong with it is named by its number."""
        size = self.region_size
        if image.features.shape[1] != size:
            reason = f"has features of size {image.features.shape[1]}, but the network reads {size}"
            raise InvalidValue(f"image {number}", reason)
        question_words(question, number)
        weights = pointing_weights(pointed, len(image), number)
        most = self.network.config.max_tokens
        [tokens] = self.encoder.states([question[: _LETTERS_A_TOKEN * most]], most=most)
        asked = AskedItem(tokens, np.zeros(0, np.int64), np.zeros(0, np.float32), weights)
        return PhotoItem(image.features, image.boxes_xyxy, (asked,))

    def _answered(
        self,
        images: Sequence[RegionFeatures],
        questions: Sequence[str],
        pointed: Sequence[ArrayLike | None],
        first: int,
    ) -> list[Answer]:
        triples = zip(images, questions, pointed, strict=True)
        items = [self.item(*one, number=first + number) for number, one in enumerate(triples)]
        batch = collate(items, self.network.config.answers).to(self.network.device)
        with torch.no_grad():
            out: AnswerOutput = self.network(
                batch.regions, batch.boxes, batch.present, batch.tokens, batch.read, batch.pointed
            )
        chances, best = out.logits[:, 0].float().softmax(dim=1).topk(min(RANKED, len(self.answers)), dim=1)
        return [
            self._worded(
                *(question, pointed[i] is not None, chances[i].tolist(), best[i].tolist()),
                out.attention[i, 0, : len(images[i])],
            )
            for i, question in enumerate(questions)
        ]

    def _worded(
        self, question: str, is_pointed: bool, chances: list[float], best: list[int], attention: Tensor
    ) -> Answer:
        texts = [self.answers.text(number) for number in best]
        looked = attention.float().cpu().numpy()
        if self.judgement is None:
            return Answer(texts[0], chances[0], tuple(zip(texts, chances, strict=True)), looked)
        verdict = self.judgement.verdict(question, chances[0], is_pointed=is_pointed)
        scale = verdict.probability / max(chances[0], 1e-9)
        ranked = tuple((text, min(1.0, scale * chance)) for text, chance in zip(texts, chances, strict=True))
        text = CANNOT_KNOW if verdict.reason else texts[0]
        return Answer(text, verdict.probability, ranked, looked, verdict.unknown, reason=verdict.reason)


class QuestionScore(AnswerScore):
    """The logit of an answer by a network whose words look at places."""

    def __init__(
        self, answerer: QuestionAnswerer, image: RegionFeatures, question: str, pointed: ArrayLike | None, answer: str
    ) -> None:
        """pointed: see `QuestionAnswerer.answer`. answer: empty for the likeliest."""
        [given] = answerer.answer([image], [question], [pointed])
        word = answer if answer and answer != CANNOT_KNOW else given.ranked[0][0]
        super().__init__(answerer.answers, word, image, given)
        self.network = answerer.network
        self._batch = collate([answerer.item(image, question, pointed)], answerer.network.config.answers).to(
            self.network.device
        )
        self.features = self._batch.regions[0]

    def __call__(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:  # noqa: ARG002 - as the protocol has it
        """(n,) the logit for each of (n, r, f) versions of the features, of which (n, r) are present."""
        rows, one = len(features), self._batch
        out = self.network(
            features,
            one.boxes.expand(rows, -1, -1),
            present,
            one.tokens.expand(rows, -1, -1, -1),
            one.read.expand(rows, -1, -1),
            one.pointed.expand(rows, -1, -1),
        )
        logits: Tensor = out.logits[:, 0, self.answer]
        return logits


def open_answerer(folder: str | Path) -> QuestionAnswerer:
    """What `AnswerNet.save_pretrained` wrote, ready to answer."""
    return QuestionAnswerer(AnswerNet.from_pretrained(folder))
