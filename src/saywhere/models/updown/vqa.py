"""UpDn for questions (Anderson et al., 2018; Teney et al., 2017): a question attends to regions, and both answer it.

    question → embedding → GRU → q                                 the state after its last word
    a_i      = softmax_i  w · (f(v_i) ∘ g(q))                      product attention, one share for each region
    v̂        = Σ a_i v_i
    logits   = W f'(f_q(q) ∘ f_v(v̂))                               gated fusion; a sigmoid makes probabilities of them

f, g … are gated tanh layers (`layers.GatedTanh`), as Teney et al. have them. The other published variant has
weight-normed ReLU layers, which carry nothing to a second derivative; in their place one may choose GELU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import FIRST_PIECE_ID, PAD_ID, Vocabulary
from saywhere.models.common.answers import AnswerVocabulary
from saywhere.models.common.network import VocabularyNetwork, check_size, listed_file
from saywhere.models.updown.config import UpDnConfig
from saywhere.models.updown.layers import BOX_SIZE, LAYERS, beside_boxes, check_regions, lifted, shares

ANSWERS = "answers.json"


@dataclass(frozen=True, slots=True, eq=False)
class VqaOutput:
    """logits: (b, answers). attention: (b, r), summing to 1 over the regions that are there, 0 elsewhere."""

    logits: Tensor
    attention: Tensor


class UpDnVqa(VocabularyNetwork):
    """Answers to questions about regions or patches.

    vocabulary, answers: what the ids of words and answers mean, if known; `attach` sets them.
    """

    kind = "updown-vqa"
    config_type = UpDnConfig
    config: UpDnConfig

    def __init__(self, config: UpDnConfig) -> None:
        super().__init__()
        self.config = config
        self.answers: AnswerVocabulary | None = None
        size, width = config.region_size + BOX_SIZE * config.use_boxes, config.width
        bent = LAYERS[config.activation]
        self.words = nn.Embedding(config.words + FIRST_PIECE_ID, config.embedding, padding_idx=PAD_ID)
        self.reader = nn.GRU(config.embedding, width, batch_first=True)
        self.attend_region = bent(size, width)
        self.attend_question = bent(width, width)
        self.attend = nn.Linear(width, 1)
        self.fuse_region = bent(size, width)
        self.fuse_question = bent(width, width)
        self.decide = bent(width, width)
        self.answer = nn.Linear(width, config.answers)
        for layer in (self.attend, self.answer):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        # Nearly all answers are wrong. A network that begins with one half for each spends its first thousand steps,
        # and its optimizer's memory, on that alone.
        nn.init.constant_(self.answer.bias, -math.log(max(2, config.answers)))
        self.drop, self.answer_drop = nn.Dropout(config.dropout), nn.Dropout(config.answer_dropout)

    def attach(self, vocabulary: Vocabulary, answers: AnswerVocabulary | None = None) -> Self:
        """Say what the ids mean. Vocabularies of other sizes are refused."""
        if answers is not None:
            check_size("answer vocabulary", len(answers), self.config.answers)
            self.answers = answers
        return super().attach(vocabulary)

    def vocabulary_files(self) -> dict[str, bytes]:
        if self.answers is None:
            raise InvalidValue("model", "does not know its answers", "attach the vocabularies before saving")
        return super().vocabulary_files() | {ANSWERS: self.answers.to_json().encode()}

    def attach_files(self, files: Mapping[str, str]) -> None:
        super().attach_files(files)
        if self.vocabulary is not None:
            self.attach(self.vocabulary, AnswerVocabulary.from_json(listed_file(files, ANSWERS)))

    def forward(
        self,
        regions: Tensor,
        present: Tensor,
        questions: Tensor,
        *,
        boxes: Tensor | None = None,
        pointed: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> VqaOutput:
        """regions: (b, r, region_size) float32. present: (b, r) bool. questions: (b, t) ids, PAD_ID after the end.

        boxes: (b, r, 4) xyxy, read only by networks with use_boxes, which need them. pointed: (b, r) ≥ 0, how much each
        region is pointed at; multiplies attention before normalising. An image with no region present is answered from
        the question alone, with attention 0. shift: (b, r), a number that is added to every entry of a region's feature
        (not to its box): the derivative of a score by a shift of 0 is the region's importance (HINT's Eq. 2), at less
        cost than by the features.
        """
        check_regions(regions, present, self.config.region_size)
        seen = beside_boxes(regions, boxes, self.config.use_boxes)
        question = self.read(questions)
        size = self.config.region_size
        joint = self.drop(self.attend_region(seen, shift, size) * self.attend_question(question)[:, None])
        attention = shares(self.attend(joint)[..., 0], present, pointed)
        moved = None if shift is None else (attention * shift).sum(dim=1)
        pooled = lifted(torch.einsum("br,brf->bf", attention, seen), moved, size)
        fused = self.fuse_question(question) * self.fuse_region(pooled)
        return VqaOutput(self.answer(self.answer_drop(self.decide(fused))), attention)

    def read(self, questions: Tensor) -> Tensor:
        """(b, width) the GRU's state after the last word of each question (b, t), whatever padding follows."""
        lengths = (questions != PAD_ID).sum(dim=1)
        states, _ = self.reader(self.words(questions))
        last = (lengths - 1).clamp_min(0)[:, None, None].expand(-1, 1, states.shape[2])
        found: Tensor = states.gather(1, last)[:, 0]
        return found
