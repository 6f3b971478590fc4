"""Where a photo shows the surroundings that its captions speak of, although nobody marked them.

Of a photo's patches on which no thing lies, those are taken to show the sky that mean "sky" more than its patches do on
average, and more so than they mean anything else around that its captions speak of; unless they mean something more of
which nobody speaks. What the eye then learns from them makes it surer the next time (self-training).
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from saywhere.language.surroundings import kinds_by_word
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.objective import EyeBatch
from saywhere.vision.eye import Seen

_SCALE = 15.0
"""How sharply cosines are read."""


class SurroundingWords:
    """The words of a learner that name surroundings. numbers: theirs; kinds: of each, in SURROUNDINGS."""

    def __init__(self, words: tuple[str, ...]) -> None:
        kinds = kinds_by_word()
        self.numbers = [number for number, word in enumerate(words) if word in kinds]
        self.kinds = [kinds[words[number]] for number in self.numbers]

    @cached_property
    def count(self) -> int:
        """Of kinds, from the first to the last that has a word."""
        return max(self.kinds, default=-1) + 1

    def cosines(self, learner: EyeLearner, patches: Tensor) -> Tensor:
        """(B, n, kinds) of patches with the nearest word of each kind; −1 for kinds without words."""
        vectors = learner.word_vectors[self.numbers]
        each = functional.normalize(patches.float(), dim=-1) @ vectors.T
        kinds = torch.tensor(self.kinds, device=each.device).expand(each.shape)
        return each.new_full((*each.shape[:2], self.count), -1.0).scatter_reduce(2, kinds, each, "amax")

    def spoken_of(self, words: Tensor) -> Tensor:
        """(K, kinds) whether captions speak of them, from how many of them have each word."""
        kinds = torch.tensor(self.kinds, device=words.device).expand(len(words), -1)
        return words.new_zeros(len(words), self.count).scatter_add(1, kinds, words[:, self.numbers]) > 0


def surroundings_shown(cosines: Tensor, spoken_of: Tensor, is_free: Tensor) -> Tensor:
    """(K, n) the number of the kind that each patch is taken to show; −1 for none, and for a patch that means a kind
    more of which nobody speaks. is_free: (K, n), where no thing lies."""
    above = cosines - cosines.mean(dim=1, keepdim=True)
    best, kinds = above.masked_fill(~spoken_of[:, None], -torch.inf).max(dim=2)
    chosen = cosines.gather(2, kinds[..., None])[..., 0]
    rival = cosines.masked_fill(spoken_of[:, None], -torch.inf).amax(dim=2)
    return torch.where(is_free & (best > 0) & (chosen >= rival), kinds, -1)


def surroundings_seen(learner: EyeLearner, patches: Tensor, spoken_of: Tensor, is_free: Tensor) -> Tensor:
    """(B, n) the kinds that the patches (B, n, d) of an eye that stands still are taken to show, as in
    `surroundings_shown`. spoken_of: (B, kinds) by the captions, of all kinds."""
    words = SurroundingWords(learner.words)
    if not words.count:
        return torch.full(is_free.shape, -1, device=is_free.device)
    with torch.no_grad():
        return surroundings_shown(words.cosines(learner, patches), spoken_of[:, : words.count], is_free)


def surroundings_loss(learner: EyeLearner, seen: Seen, batch: EyeBatch) -> tuple[Tensor, Tensor]:
    """The cross entropy of the kinds that patches are taken to show among all kinds, and (B, n) these kinds."""
    shown = torch.full(seen.saliency.shape, -1, device=seen.saliency.device)
    words = SurroundingWords(learner.words)
    nothing = seen.cells.sum() * 0
    if not words.count or not len(batch.captioned):
        return nothing, shown
    cosines = words.cosines(learner, seen.patches[batch.captioned])
    is_free = ~(batch.shown[batch.captioned] > 0).flatten(2).any(dim=2)
    taken = surroundings_shown(cosines.detach(), words.spoken_of(batch.words), is_free)
    shown[batch.captioned] = taken
    if not (taken >= 0).any():
        return nothing, shown
    return functional.cross_entropy(_SCALE * cosines.flatten(0, 1), taken.flatten(), ignore_index=-1), shown
