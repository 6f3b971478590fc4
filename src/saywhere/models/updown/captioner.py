"""The UpDn captioner (Anderson et al., 2018): an attention LSTM looks, a language LSTM speaks.

At each place t:
    h¹ = LSTM([h² before; mean of the regions; embedded word])
    a_i = softmax_i  w · tanh(W_v v_i + W_h h¹),  v̂ = Σ a_i v_i
    h² = LSTM([v̂; h¹]),  logits = W h² + b
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from saywhere.language.vocabulary import FIRST_PIECE_ID, PAD_ID
from saywhere.models.common.network import VocabularyNetwork
from saywhere.models.updown.config import UpDnCaptionConfig
from saywhere.models.updown.layers import BOX_SIZE, beside_boxes, check_regions, lifted, shares, shifted


@dataclass(frozen=True, slots=True, eq=False)
class CaptionerOutput:
    """logits: (b, t, V + 3) over ids: place t scores the word after the one it read. attention: (b, t, r)."""

    logits: Tensor
    attention: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRegions:
    """Images as every step needs them, n rows. seen: (n, r, f). compared: (n, r, attention). mean: (n, f).

    present: (n, r). pointed, shift: (n, r) or nothing.
    """

    seen: Tensor
    compared: Tensor
    mean: Tensor
    present: Tensor
    pointed: Tensor | None = None
    shift: Tensor | None = None

    def take(self, rows: Tensor) -> EncodedRegions:
        """The images of these rows, in this order."""
        pointed = None if self.pointed is None else self.pointed[rows]
        shift = None if self.shift is None else self.shift[rows]
        return EncodedRegions(self.seen[rows], self.compared[rows], self.mean[rows], self.present[rows], pointed, shift)


@dataclass(frozen=True, slots=True, eq=False)
class LSTMState:
    """States of both LSTMs, (n, width) each: hidden and cell of the one that looks, then of the one that speaks."""

    attention: tuple[Tensor, Tensor]
    language: tuple[Tensor, Tensor]

    def take(self, rows: Tensor) -> LSTMState:
        (a, b), (c, d) = self.attention, self.language
        return LSTMState((a[rows], b[rows]), (c[rows], d[rows]))


class UpDnCaptioner(VocabularyNetwork):
    """Captions of regions or patches, word by word. vocabulary: what the ids mean, if known; `attach` sets it."""

    kind = "updown-caption"
    config_type = UpDnCaptionConfig
    config: UpDnCaptionConfig

    def __init__(self, config: UpDnCaptionConfig) -> None:
        super().__init__()
        self.config = config
        size, width = config.region_size + BOX_SIZE * config.use_boxes, config.width
        ids = config.words + FIRST_PIECE_ID
        self.words = nn.Embedding(ids, config.embedding, padding_idx=PAD_ID)
        self.attention_lstm = nn.LSTMCell(width + size + config.embedding, width)
        self.language_lstm = nn.LSTMCell(size + width, width)
        self.compare_region = nn.Linear(size, config.attention, bias=False)
        self.compare_state = nn.Linear(width, config.attention, bias=False)
        self.attend = nn.Linear(config.attention, 1, bias=False)
        self.say = nn.Linear(width, ids)
        self.drop = nn.Dropout(config.dropout)

    def forward(
        self,
        regions: Tensor,
        present: Tensor,
        words: Tensor,
        *,
        boxes: Tensor | None = None,
        pointed: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> CaptionerOutput:
        """Teacher-forced. regions, present, boxes, pointed, shift: as for `UpDnVqa`. words: (b, t), BEGIN_ID first.

        Place t has read words 0 … t and scores word t + 1. A row's padding changes nothing before it.
        """
        encoded = self.look(regions, present, boxes=boxes, pointed=pointed, shift=shift)
        state = self.begin(len(regions))
        logits, attention = [], []
        for place in range(words.shape[1]):
            state, shared = self.step(encoded, state, words[:, place])
            logits.append(self.drop(state.language[0]))
            attention.append(shared)
        return CaptionerOutput(self.say(torch.stack(logits, dim=1)), torch.stack(attention, dim=1))

    def look(
        self,
        regions: Tensor,
        present: Tensor,
        *,
        boxes: Tensor | None = None,
        pointed: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> EncodedRegions:
        """What every step needs of the images, made once. Arguments as for `forward`."""
        check_regions(regions, present, self.config.region_size)
        seen = beside_boxes(regions, boxes, self.config.use_boxes)
        even = present.to(seen) / present.sum(dim=1, keepdim=True).clamp_min(1)
        mean = self._pooled(seen, even, shift)
        return EncodedRegions(
            seen, shifted(self.compare_region, seen, shift, regions.shape[2]), mean, present, pointed, shift
        )

    def begin(self, count: int) -> LSTMState:
        """The states before the first word of so many captions."""
        zero = self.say.weight.new_zeros(count, self.config.width)
        return LSTMState((zero, zero), (zero, zero))

    def step(self, encoded: EncodedRegions, state: LSTMState, words: Tensor) -> tuple[LSTMState, Tensor]:
        """Read a word for each row, (n,) ids; the states after it and where it looked, (n, r).

        `self.say` of the speaking LSTM's hidden state scores the next word.
        """
        looked = self.attention_lstm(
            torch.cat([state.language[0], encoded.mean, self.words(words)], dim=1), state.attention
        )
        scores = self.attend((encoded.compared + self.compare_state(looked[0])[:, None]).tanh())[..., 0]
        attention = shares(scores, encoded.present, encoded.pointed)
        pooled = self._pooled(encoded.seen, attention, encoded.shift)
        return LSTMState(looked, self.language_lstm(torch.cat([pooled, looked[0]], dim=1), state.language)), attention

    def _pooled(self, seen: Tensor, weights: Tensor, shift: Tensor | None) -> Tensor:
        """(n, f) the regions (n, r, f), shifted, in these proportions (n, r)."""
        moved = None if shift is None else (weights * shift).sum(dim=1)
        return lifted(torch.einsum("br,brf->bf", weights, seen), moved, self.config.region_size)
