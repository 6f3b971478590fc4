"""How likely a word of a region's caption is, as a function of the region's patches that gradients can follow.

    patches → weighed mean → alignment → + the detector's names → length 1 → + class names → memory → decoder → word

A decoder that attends to the photo's hidden states reads those of the patches that are there; gradients follow the
vector alone. It gives the numbers that `AlignedView`, the gap and the decoder give. The detector's names follow from
boxes and not from patches: here they stay as they are, whatever becomes of the patches, and `without_names` says what
they were worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from saywhere.core import InvalidValue, Region, WholeImage
from saywhere.core.caption import OBJECT
from saywhere.language.vocabulary import END_ID
from saywhere.models.common.modes import eval_mode
from saywhere.models.face import check_level
from saywhere.models.patchioner.alignment import Alignment, LinearAlignment, SharedSpace, Talk2DinoAlignment
from saywhere.models.patchioner.decoder import PhotoStates, PrefixDecoder
from saywhere.models.patchioner.eyes import Names
from saywhere.models.patchioner.layers import unit
from saywhere.models.patchioner.memory import Direct, Gap, MemoryBank, MemoryGap
from saywhere.models.patchioner.writers import MemoryWriter, photo_states_of, reads_photos

if TYPE_CHECKING:
    from saywhere.models.patchioner.look import SeerLook

_ROWS = 1024
"""Sentences of the memory that are read at once for a gradient."""


@dataclass(frozen=True, slots=True)
class _TargetWord:
    """A word in the decoder's terms. read: ids up to the word's last piece, which is not read any more. pieces: its
    own ids, the last of them said after all of `read`."""

    word: str
    read: tuple[int, ...]
    pieces: tuple[int, ...]


class WordScore:
    """The log-probability of one word of a caption, given the words before it; of a word of several pieces, their sum.

    features: (r, k) the patches that count for the region, as offsets from the photo's mean patch, so that a patch of
        zeros looks like the photo on average; in an orthonormal basis of what they span, which changes no length, no
        product and no gradient, but makes them much smaller.
    cells: (r,) where they lie, row by row on the grid. weights: (r,) how much the region weighs each; they sum to 1.
    grid: rows and columns. level: which the caption is of.
    """

    def __init__(self, look: SeerLook, region: Region, text: str, index: int, level: str = OBJECT) -> None:
        check_level(level, look.levels, look.seer.name)
        seen, writer = look.aligned, look.seer.writer
        if not isinstance(writer, MemoryWriter):
            raise InvalidValue("writer", f"words of a {type(writer).__name__} cannot be explained")
        own = writer.at(level)
        self.gap = _followed(own.gap_for(region))
        self.writer = _spoken_by(own.decoder)
        self.classes = seen.classes if seen.blend.classes else None
        self.loudness, self.alignment = seen.blend.classes, seen.alignment
        self.grid = look.view.frame.grid
        patches = torch.from_numpy(np.array(look.view.patches.reshape(self.grid[0] * self.grid[1], -1)))
        weights = seen.weights([region])
        flat, average = (torch.from_numpy(one.reshape(-1)) for one in (weights, seen.weights([WholeImage()])))
        self.cells = flat.nonzero()[:, 0]
        self.average = average @ patches
        # Of the whole photo an eye has a vector of its own; what lies between it and the mean of patches stays.
        between = seen.vectors([region]) - seen.weighed(weights, [region])
        self.offset = torch.from_numpy(between) if seen.alignment is None else None
        self._seen = seen if reads_photos(self.writer) else None
        self.weights = flat[self.cells]
        self.basis, spanned = torch.linalg.qr((patches - self.average)[self.cells].T)
        self.features = spanned.T.contiguous()
        self.names = seen.names(weights, [region])
        # As if the detector had found nothing: what was learnt for that is the offset alone.
        quiet = None if seen.tags is None else seen.tags.offset[None]
        self.silent = None if quiet is None else Names(quiet, np.zeros_like(quiet))
        self._target_word = _target_word(self.writer, text, index, "" if level == OBJECT else level)

    @property
    def word(self) -> str:
        """As the caption has it."""
        return self._target_word.word

    @property
    def attention(self) -> Tensor:
        """(r,) how much each patch counts by itself: a seer weighs patches as the region does, and nothing else."""
        return self.weights

    def __call__(self, features: Tensor, present: Tensor, items: Tensor) -> Tensor:  # noqa: ARG002 - as the protocol has it
        """(n,) the score of each of (n, r, k) versions of the features.

        present: (n, r) booleans. The weights of patches that are not there go to the others; if none is there, the
        region looks like the photo's mean patch. items: all rows are of one item, so this is not looked at.
        """
        shares = self.weights * present
        shares = shares / shares.sum(dim=1, keepdim=True).clamp_min(torch.finfo(shares.dtype).tiny)
        pooled = torch.einsum("nr,nrk->nk", shares, features)
        return self._score(self.vectors(pooled, self.names), shares)

    def vectors(self, pooled: Tensor, names: Names | None) -> Tensor:
        """(n, size) vectors of length 1, as `AlignedView.weighed` gives them, from (n, k) means of features."""
        seen = pooled @ self.basis.T + self.average
        joined = _aligned(self.alignment, seen)
        if names is not None:
            joined = unit(joined + torch.from_numpy(names.learnt)) + torch.from_numpy(names.named)
        else:
            joined = unit(joined)
        if self.classes is not None:
            parts = (self.classes.weight, self.classes.bias, self.classes.vectors)
            weight, bias, vectors = (torch.from_numpy(np.asarray(part)) for part in parts)
            joined = joined + self.loudness * ((seen @ weight.T + bias).softmax(dim=1) @ vectors)
        joined = unit(joined)
        return joined if self.offset is None else unit(joined + self.offset)

    def without_names(self) -> float | None:
        """The score if the detector had found nothing; None for a seer without one."""
        if self.silent is None:
            return None
        with torch.no_grad():
            vectors = self.vectors((self.weights @ self.features)[None], self.silent)
            return float(self._score(vectors, self.weights[None])[0])

    def _score(self, vectors: Tensor, shares: Tensor) -> Tensor:
        """(n,) from (n, d) vectors; shares: (n, r), how much each patch counts for each."""
        closed = vectors if self.gap is None else remembered(vectors, self.gap)
        word = self._target_word
        read = torch.tensor(word.read, device=self.writer.device).expand(len(closed), -1)
        said = torch.tensor(word.pieces, device=self.writer.device)
        with_gradients = torch.is_grad_enabled()
        with eval_mode(self.writer), torch.set_grad_enabled(with_gradients):
            states = self.writer.read(closed.to(self.writer.device), read, None, self._photo_states(shares))
            states = states[:, -len(word.pieces) :]
            likely = self.writer.say(states).log_softmax(dim=-1)
        each = likely.gather(2, (said - END_ID).expand(len(closed), -1)[:, :, None])
        return each.sum(dim=(1, 2))

    def _photo_states(self, shares: Tensor) -> PhotoStates | None:
        if self._seen is None:
            return None
        weights = torch.zeros(len(shares), self.grid[0] * self.grid[1])
        weights[:, self.cells] = shares.detach().float()
        return photo_states_of(self._seen, weights.view(-1, *self.grid).numpy())


def remembered(vectors: Tensor, gap: MemoryGap) -> Tensor:
    """(n, d) what a memory makes of (n, d) vectors of length 1, in a form that gradients can follow."""
    closed: Tensor = _Remembered.apply(vectors, gap)  # type: ignore[no-untyped-call]  # torch has no types for it
    return closed


class _Remembered(torch.autograd.Function):
    """v' = Σ αᵢ mᵢ / |Σ αᵢ mᵢ|, α = softmax(cos(v, m) / τ): forwards as the memory does it, backwards in parts, too."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, gap: MemoryGap) -> Tensor:
        closed = gap.bank.project(vectors.numpy(), gap.temperature, gap.top, nearest=gap.top or 1)
        ctx.save_for_backward(vectors)
        ctx.gap = gap
        ctx.highest = [near[0].cosine for near in closed.nearest]
        ctx.lowest = [near[-1].cosine if gap.top else -math.inf for near in closed.nearest]
        return torch.from_numpy(closed.vectors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (vectors,) = ctx.saved_tensors
        bank, temperature = ctx.gap.bank, ctx.gap.temperature
        bounds = torch.tensor([ctx.highest, ctx.lowest], dtype=torch.float64)[:, :, None]
        mixed = _summed(bank, vectors, temperature, bounds, None)
        mean = mixed[:, :-1] / mixed[:, -1:]
        length = mean.norm(dim=1, keepdim=True)
        towards = gradients[0].double()
        # Through the division by the length: only what lies across the mean counts. So it has no product with the mean,
        # which the derivative of softmax would subtract.
        towards = (towards - mean * (towards * mean).sum(dim=1, keepdim=True) / length**2) / length
        pull = _summed(bank, vectors, temperature, bounds, towards)[:, :-1] / mixed[:, -1:]
        return (pull / temperature).to(vectors.dtype), None


def _summed(bank: MemoryBank, vectors: Tensor, temperature: float, bounds: Tensor, towards: Tensor | None) -> Tensor:
    """(n, d + 1) Σ eᵢ mᵢ and Σ eᵢ over the memory, e = exp((cos − highest) / τ); with `towards` each times mᵢ · it.

    bounds: (2, n, 1) the highest cosine, and the lowest that still counts.
    """
    total = torch.zeros(len(vectors), bank.size + 1, dtype=torch.float64)
    for start in range(0, len(bank), _ROWS):
        rows = torch.from_numpy(np.array(bank.vectors[start : start + _ROWS], dtype=np.float32))
        cosines = (vectors @ rows.T).double()
        # A little below the lowest, which was rounded otherwise.
        shares = torch.exp((cosines - bounds[0]) / temperature) * (cosines >= bounds[1] - 1e-6)
        if towards is not None:
            shares = shares * (towards @ rows.T.double())
        total[:, :-1] += shares @ rows.double()
        total[:, -1] += shares.sum(dim=1)
    return total


def _aligned(alignment: Alignment | None, features: Tensor) -> Tensor:
    """What `Alignment.patches` does, in a form that gradients can follow. Both ways are linear in the features."""
    if isinstance(alignment, LinearAlignment):
        # Without dropout, whatever the module is doing.
        aligned: Tensor = alignment.linear((features - alignment.mean) / alignment.scale)
        return aligned
    if alignment is None or isinstance(alignment, Talk2DinoAlignment | SharedSpace):
        return features
    raise InvalidValue("alignment", f"gradients cannot follow a {type(alignment).__name__}")


def _followed(gap: Gap) -> MemoryGap | None:
    if isinstance(gap, MemoryGap):
        return gap
    if isinstance(gap, Direct):
        return None
    raise InvalidValue("gap", f"gradients cannot follow a {type(gap).__name__}", "use the memory, or none")


def _spoken_by(writer: Any) -> PrefixDecoder:
    if isinstance(writer, PrefixDecoder) and not writer.config.extra_size:
        return writer
    raise InvalidValue("writer", f"words of a {type(writer).__name__} cannot be explained", "use a PrefixDecoder")


def _target_word(writer: PrefixDecoder, text: str, index: int, prompt: str = "") -> _TargetWord:
    words = text.split()
    if not 0 <= index < len(words):
        raise InvalidValue("word", f"{index} is none of the {len(words)} words, which are counted from 0")
    pieces = writer.vocabulary.encode(words)
    own = [i for i, owner in enumerate(pieces.owners) if owner == index]
    if not own:
        raise InvalidValue("word", f"{words[index]!r} is nothing that the model says")
    unknown = writer.vocabulary.unknown_id
    if any(pieces.ids[i] == unknown for i in own):
        raise InvalidValue("word", f"{words[index]!r} is a word that the model does not know")
    if own[-1] >= writer.config.max_words:
        raise InvalidValue("text", f"is too long: the model says at most {writer.config.max_words} pieces of words")
    ids = pieces.ids
    [begin] = writer.begins([prompt], 1)
    return _TargetWord(words[index], (*begin, *ids[: own[-1]]), ids[own[0] : own[-1] + 1])
