"""Writing captions: [MASK] is appended, read, and replaced by the word; then the next [MASK].

Tags and regions never see the caption and a word sees only the words before it, so keys and values of all of them stay
as they are. Each step reads two places: the word just chosen, and the [MASK] after it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saywhere.models.common.kv_cache import KVCache
from saywhere.models.common.modes import eval_mode
from saywhere.models.oscar.batch import Context
from saywhere.models.oscar.mask import additive
from saywhere.models.oscar.network import Oscar
from saywhere.models.search import BEAM, GenerationConfig, Hypothesis, Rules, Steps, Written, search, uniform_draws
from saywhere.models.tagged_regions import TaggedRegions

_ROWS = 512
"""Beams that are written at once, so that what is kept of them stays small."""


def write(
    model: Oscar, images: Sequence[TaggedRegions], level: str | None = None, how: GenerationConfig = BEAM
) -> list[Written]:
    """A caption for each image; its confidence is exp(score). Markers and the unknown word are never said."""
    number, most = model.config.level_number(level), how.most_words(model.config.max_words)
    at_once = max(1, _ROWS // (how.beams if how.method == "beam" else 1))
    texts: list[Written] = []
    with eval_mode(model):
        for first in range(0, len(images), at_once):
            part = images[first : first + at_once]
            context = model.reader.context(part).to(model.device)
            draws = uniform_draws([_key(image) for image in part], how.seed, most) if how.method == "nucleus" else None
            said = search(OscarSteps(model, context, number, most), _rules(model, how, most), draws)
            texts += [_written(model, one) for one in said]
    return texts


class OscarSteps(Steps):
    """A network that has looked at some images, for `search`. A token is a word's id."""

    def __init__(self, model: Oscar, context: Context, level: int, most: int) -> None:
        self._model, self._level, self._place = model, level, 0
        self._unseen = additive(context.there[:, None])
        self._images = torch.arange(len(context), device=model.device)
        self._memories = _memories(model, context, self._unseen, most)

    def start(self) -> Tensor:
        return self.advance(torch.full_like(self._images, self._model.coding.cls_id))

    def advance(self, tokens: Tensor) -> Tensor:
        model = self._model
        ids = torch.stack([tokens, torch.full_like(tokens, model.coding.mask_id)], dim=1)
        x = model.embed_captions(ids, torch.full_like(tokens, self._level), start=self._place)
        mask = self._mask(len(tokens))
        for layer, memory in zip(model.stack, self._memories, strict=True):
            query, key, value = layer.split(layer.query_key_value(x), 3)
            keys, values = memory.append(torch.stack([key, value]), keep=1)
            if memory is self._memories[-1]:
                # Of the last layer only the [MASK]'s own state is asked for.
                x, query, mask = x[:, 1:], query[:, :, 1:], mask[:, :, 1:]
            x = layer.finish(x, layer.look(query, keys, values, mask))
        self._place += 1
        return model.say(x[:, 0])

    def reorder(self, rows: Tensor) -> None:
        same = torch.equal(self._images[rows], self._images)
        if not same:
            self._unseen, self._images = self._unseen[rows], self._images[rows]
        for memory in self._memories:
            memory.reorder(rows, same_texts=same)

    def _mask(self, rows: int) -> Tensor:
        """(rows, 1, 2, keys): both see the image and the words so far; the word does not see the [MASK] after it."""
        words = self._unseen.new_zeros(rows, 1, 2, self._place + 2)
        words[:, :, 0, -1] = -torch.inf
        return torch.cat([self._unseen.expand(-1, -1, 2, -1), words], dim=-1)


def _memories(model: Oscar, context: Context, mask: Tensor, most: int) -> list[KVCache]:
    """What each layer keeps of the images."""
    x, memories = model.embed_context(context), []
    for layer in model.stack:
        query, key, value = layer.split(layer.query_key_value(x), 3)
        # [CLS], the words, and the [MASK] after the last but one.
        memories.append(KVCache(most + 1, torch.stack([key, value])))
        if len(memories) < len(model.layers):
            x = layer.finish(x, layer.look(query, key, value, mask))
    return memories


def _rules(model: Oscar, how: GenerationConfig, most: int) -> Rules:
    words = model.coding
    # A checkpoint's table may have more rows than its tokenizer has pieces.
    nameless = range(words.size, model.config.words)
    return Rules(how, most, (words.sep_id,), (*words.never_generated, *nameless))


def _written(model: Oscar, said: Hypothesis) -> Written:
    return Written(model.coding.decode(said.tokens), said.score, said.logprobs, said.ended)


def _key(image: TaggedRegions) -> bytes:
    """What the chances of a text depend on besides the seed: the image, not its neighbours."""
    seen = image.features[image.region_present].tobytes()
    return seen + repr([tag for tag, there in zip(image.tags, image.tag_present, strict=True) if there]).encode()
