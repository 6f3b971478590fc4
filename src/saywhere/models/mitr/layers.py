"""The parts that MITR and its baselines are built of: norms, attention, feed-forward networks, embeddings.

Masks are boolean, True where a query may look, and broadcast to (batch, heads, queries, keys).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn import functional

from saywhere.core.alignment import NOWHERE
from saywhere.language.vocabulary import BEGIN_ID
from saywhere.models.common.batches import padding_mask
from saywhere.models.common.kv_cache import KVCache

ROW_OFFSET = 2
"""id = row + 2. Row 0 of the tables is the border of a text: read as its begin (id 1), said as its end (id 2).

The authors write 0 for begin, end and padding, so a row is their token. Reading and saying use different tables, so
begin and end share no parameter; padding is masked and needs none.
"""

BOX_SIZE = 5
NORM_EPSILON = 1e-12
_FIRST_POSITIONS = 512


class KeysValues(NamedTuple):
    """What a query can look at: keys and values, each (batch, heads, n, width / heads)."""

    keys: Tensor
    values: Tensor


class DrawnWords(NamedTuple):
    """Words drawn at random, that can still be learned from.

    rows: (batch, n) which were drawn. chances: (batch, n, words + 1) what they were drawn from.
    """

    rows: Tensor
    chances: Tensor


def rows_of(ids: Tensor) -> Tensor:
    """Rows of the word tables for our ids; begin, end and padding give row 0."""
    return (ids - ROW_OFFSET).clamp_min(0)


def as_keys(mask: Tensor) -> Tensor:
    """A (batch, n) mask of real places as the mask of an attention over them."""
    return mask[:, None, None, :]


def causal_mask(queries: int, keys: int, device: torch.device) -> Tensor:
    """(1, 1, queries, keys): query t sees keys 0 … t, so all of them where there are fewer keys."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()[None, None]


class Norm(nn.Module):
    """scale · (x − mean) / (std + 1e-6) + shift with the unbiased std: the authors' norm inside the transformer.

    Computed by torch's fused norm, whose std is the biased one and whose 1e-12 stands under the root: the two differ
    by less than 1e-6 / std of the value, nothing for any x that is not constant, and are several times as fast.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.unbias = math.sqrt((width - 1) / width)

    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, self.scale.shape, *self.scale_and_shift(), NORM_EPSILON)

    def scale_and_shift(self) -> tuple[Tensor, Tensor]:
        """As torch's norm takes them."""
        return self.scale * self.unbias, self.shift


class Attention(nn.Module):
    """Multi-head attention with biases everywhere."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        """(batch, n, width) to (batch, heads, n, width / heads)."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def keys_values(self, memory: Tensor) -> KeysValues:
        """Keys and values of (batch, n, width), for any number of queries to come."""
        return KeysValues(self.split(self.key(memory)), self.split(self.value(memory)))

    def attend(self, x: Tensor, memory: KeysValues, mask: Tensor | None) -> Tensor:
        """Queries (batch, n, width) on keys and values that are there already."""
        dropout = self.dropout if self.training else 0.0
        seen = functional.scaled_dot_product_attention(self.split(self.query(x)), *memory, mask, dropout)
        out: Tensor = self.out(seen.transpose(1, 2).flatten(2))
        return out

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        return self.attend(x, self.keys_values(memory), mask)

    def advance(self, x: Tensor, memory: Tensor, cache: KVCache) -> Tensor:
        """The next place of every row, (rows, width), on all so far. memory: (rows, width) what it adds to them."""
        keys, values = cache.append(torch.stack(self.keys_values(memory[:, None])))
        return self.attend(x[:, None], KeysValues(keys, values), None)[:, 0]


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc2(self.drop(self.fc1(x).relu()))
        return out


class Positions(nn.Module):
    """Sinusoidal positions: sine on even channels, cosine on odd ones, base 10,000."""

    table: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", self._made(_FIRST_POSITIONS), persistent=False)

    def _made(self, count: int) -> Tensor:
        speed = torch.exp(torch.arange(0, self.width, 2).float() * -(math.log(10000.0) / self.width))
        angle = torch.arange(count).float()[:, None] * speed
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)

    def forward(self, start: int, count: int) -> Tensor:
        """(count, width) the codes of positions start … start + count − 1."""
        if start + count > len(self.table):
            self.table = self._made(2 * (start + count)).to(self.table)
        return self.table[start : start + count]


class RegionEmbedding(nn.Module):
    """Features and boxes of regions as vectors. No position: regions have no order."""

    def __init__(self, region_size: int, width: int, dropout: float) -> None:
        super().__init__()
        self.feature = nn.Linear(region_size, width)
        self.feature_norm = nn.LayerNorm(width)
        self.box = nn.Linear(BOX_SIZE, width)
        self.box_norm = nn.LayerNorm(width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(dropout)

    def forward(self, features: Tensor, boxes: Tensor) -> Tensor:
        """features: (batch, regions, region_size); boxes: (batch, regions, 5). Returns (batch, regions, width)."""
        feature = self.feature_norm(self.drop(self.feature(features).relu()))
        box = self.box_norm(self.drop(self.box(boxes).relu()))
        out: Tensor = self.norm(feature + box)
        return out


class _Drawn(torch.autograd.Function):
    """Straight through: forwards the rows of the table that were drawn, backwards as if chances @ table had been taken.

    Written out because the product, of one-hot weights with the table, need not be worked out in either direction.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, table: Tensor, chances: Tensor, rows: Tensor) -> Tensor:  # noqa: ARG004 - for backward
        ctx.save_for_backward(table, rows)
        return table[rows]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        table, rows = ctx.saved_tensors
        to_table = torch.zeros_like(table).index_add_(0, rows.flatten(), grad.flatten(0, 1))
        return to_table, grad @ table.t(), None


class WordEmbedding(nn.Module):
    """Words as vectors; the table has `words` + 1 rows, see `ROW_OFFSET`."""

    def __init__(self, words: int, width: int, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(words + 1, width)
        self.positions = Positions(width)
        self.drop = nn.Dropout(dropout)
        self.scale = math.sqrt(width)

    def forward(self, words: Tensor | DrawnWords, start: int = 0) -> Tensor:
        """words: (batch, n) our ids, or words drawn. Returns (batch, n, width). start: the position of the first."""
        if isinstance(words, DrawnWords):
            vectors: Tensor = _Drawn.apply(self.table.weight, words.chances, words.rows)  # type: ignore[no-untyped-call]  # torch declares no types for it
        else:
            vectors = self.table(rows_of(words))
        out: Tensor = self.drop(torch.add(self.positions(start, vectors.shape[1]), vectors, alpha=self.scale))
        return out


class TraceEmbedding(nn.Module):
    """Boxes of a trace as vectors, in their order."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.box = nn.Linear(BOX_SIZE, width)
        self.box_norm = nn.LayerNorm(width)
        self.norm = nn.LayerNorm(width)
        self.positions = Positions(width)
        self.drop = nn.Dropout(dropout)

    def forward(self, boxes: Tensor, start: int = 0) -> Tensor:
        """boxes: (batch, n, 5). Returns (batch, n, width). start: the position of the first of them."""
        vectors = self.drop(self.box_norm(self.box(boxes)).relu())
        out: Tensor = self.norm(vectors + self.positions(start, boxes.shape[1]))
        return out


def masked_boxes(boxes: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """(B, T, 5) boxes, each replaced by the whole image with probability `rate`; at 0 nothing is drawn."""
    if not rate:
        return boxes
    drawn = torch.rand(boxes.shape[:2], generator=generator, device=generator.device).to(boxes.device)
    return torch.where((drawn < rate)[:, :, None], boxes.new_tensor(NOWHERE), boxes)


def shifted_words(words: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """What a caption's decoder reads and must say: begin and the words; the words and end.

    words: (batch, n) ids, padded; lengths: (batch,). Returns (batch, n + 1) ids to read, and (batch, n + 1) rows to
    say: 0 for the end and, without meaning, after it.
    """
    begin = torch.full_like(words[:, :1], BEGIN_ID)
    real = padding_mask(lengths, words.shape[1])
    rows = torch.where(real, rows_of(words), 0)
    return torch.cat([begin, words], dim=1), functional.pad(rows, (0, 1))


def nowhere(words: Tensor) -> Tensor:
    """(B, T, 5) the whole image for each of (B, T) words: boxes that tell nothing."""
    return torch.tensor(NOWHERE, device=words.device).expand(*words.shape, BOX_SIZE)


def shifted_boxes(boxes: Tensor) -> Tensor:
    """(batch, n, 5) boxes as a trace's decoder reads them: an all-zero start box first, the last one left out."""
    return functional.pad(boxes[:, :-1], (0, 0, 1, 0))


def initialise(module: nn.Module) -> None:
    """Xavier-uniform for every matrix, as the authors' transformer has it."""
    for parameter in module.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
