"""Answers, token by token with what was read kept, and the masks that they cut out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import torch
from torch import Tensor

from saywhere.core import InvalidValue
from saywhere.models.common.modes import eval_mode
from saywhere.models.search import GenerationConfig, Rules, Steps, search, uniform_draws
from saywhere.models.tracevlm.batch import PointBatch, ReadTalk, padded_ids, point_batch, pointed
from saywhere.models.tracevlm.examples import Exchange, SegmentTarget, answered
from saywhere.models.tracevlm.network import TraceVLM
from saywhere.models.tracevlm.prompts import Prompt
from saywhere.models.tracevlm.qwen import SEGMENT_TOKENS, VisualFeatures

MOST_WORDS = 512
"""Tokens of an answer, unless another number is asked for."""


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """tokens: without the end. score: the mean of their log-probabilities. forgotten: turns that had no room."""

    tokens: tuple[int, ...]
    text: str
    score: float
    ended: bool
    forgotten: int


class AnswerSteps(Steps):
    """A network that has read some prompts, for `search`. Padding stands before each prompt.

    hear: called with all tokens of the first prompt's answer whenever there is one more; for answers that grow by one
    token at a time, not for a beam.
    """

    def __init__(
        self,
        model: TraceVLM,
        ids: Tensor,
        there: Tensor,
        seen: VisualFeatures,
        hear: Callable[[Sequence[int]], None] | None = None,
    ) -> None:
        self._hear, self._said = hear, list[int]()
        self._body, self._ids, self._there, self._seen = model.body, ids, there, seen
        self._cache: Any = model.body.new_cache()
        self._ahead = ids.new_zeros(len(ids), 1)

    def start(self) -> Tensor:
        positions, self._ahead = self._body.positions(self._ids, self._there, self._seen.grids)
        return self._read(self._ids, positions, self._seen)

    def advance(self, tokens: Tensor) -> Tensor:
        if self._hear is not None:
            self._said.append(int(tokens[0]))
            self._hear(self._said)
        place = self._there.sum(dim=1, keepdim=True) + self._ahead
        self._there = torch.cat([self._there, torch.ones_like(self._there[:, :1])], dim=1)
        return self._read(tokens[:, None], place.expand(3, -1, -1), None)

    def reorder(self, rows: Tensor) -> None:
        self._cache.reorder_cache(rows)
        self._there, self._ahead = self._there[rows], self._ahead[rows]

    def _read(self, ids: Tensor, positions: Tensor, seen: VisualFeatures | None) -> Tensor:
        return self._body.say(self._body.read(ids, self._there, positions, seen, self._cache)[:, -1])


def write(
    model: TraceVLM,
    seen: VisualFeatures,
    talks: Sequence[Sequence[Exchange]],
    how: GenerationConfig,
    hear: Callable[[str], None] | None = None,
) -> list[WrittenAnswer]:
    """The answer to each of some talks about the same images. seen: as the eye saw them, before perception.

    hear: called with all that is written so far, token by token; for one talk. A beam is heard when it has ended.
    """
    room = how.max_words or MOST_WORDS
    prompts = [model.reader.read(talk, _image_tokens(model, seen), room) for talk in talks]
    ids, there = padded_ids([prompt.ids for prompt in prompts], model.reader.inputs.padding, left=True)
    reader, rows = model.reader, model.body.outputs
    rules = Rules(how, room, reader.ends, (*reader.unsayable, *range(reader.size, rows)), reader.sentence_ends)
    keys = [repr((prompt.ids, "answer")).encode() for prompt in prompts]
    draws = uniform_draws(keys, how.seed, room) if how.method == "nucleus" else None
    with eval_mode(model):
        shown, _ = model.perceive(seen.repeated(len(talks)), _points(model, seen, talks, prompts))
        heard = None if hear is None or rules.beams > 1 else lambda tokens: hear(model.reader.text(tokens))
        found = search(AnswerSteps(model, ids.to(model.device), there.to(model.device), shown, heard), rules, draws)
    return [
        WrittenAnswer(one.tokens, model.reader.text(one.tokens), one.score, one.ended, prompt.forgotten)
        for one, prompt in zip(found, prompts, strict=True)
    ]


def rate(model: TraceVLM, seen: VisualFeatures, talks: Sequence[Sequence[Exchange]]) -> Tensor:
    """(talks,) the log-probability of all that the assistant says in each of some talks about the same images."""
    prompts = [model.reader.read(talk, _image_tokens(model, seen)) for talk in talks]
    ids, there = (one.to(model.device) for one in padded_ids([p.ids for p in prompts], model.reader.inputs.padding))
    learnt, _ = padded_ids([[int(said) for said in p.learnt] for p in prompts], 0)
    with eval_mode(model):
        shown, _ = model.perceive(seen.repeated(len(talks)), _points(model, seen, talks, prompts))
        positions, _ = model.body.positions(ids, there, shown.grids)
        logs = model.body.say(model.body.read(ids, there, positions, shown)).float().log_softmax(dim=-1)
    told = logs[:, :-1].gather(2, ids[:, 1:, None])[..., 0]
    return (told * learnt[:, 1:].to(told)).sum(dim=1)


def segment(
    model: TraceVLM,
    seen: VisualFeatures,
    talk: Sequence[Exchange],
    said: Sequence[int] = (),
    images: Sequence[int] = (),
    forgotten: int = 0,
) -> list[Tensor]:
    """(h, w) logits of each thing that an answer cuts out. said: its tokens; by default those of one mask alone.
    images: which image each is in; by default the first. forgotten: turns that had no room when it was written."""
    alone = answered(SegmentTarget(image=images[0] if images else 0)).parts
    answer = list(said) or model.reader.parts(alone)[0]
    kept = talk[forgotten:]
    prompt = model.reader.read(kept, _image_tokens(model, seen), len(answer))
    tokens = torch.tensor([[*prompt.ids, *answer]], device=model.device)
    starts = _segment_starts(model, answer)
    if not starts:
        raise InvalidValue("answer", "cuts nothing out")
    with eval_mode(model):
        shown, points = model.perceive(seen, _points(model, seen, [kept], [prompt]))
        there = torch.ones_like(tokens, dtype=torch.bool)
        positions, _ = model.body.positions(tokens, there, seen.grids)
        states = model.body.read(tokens, there, positions, shown)[0, len(prompt.ids) :]
        picked = [states[None, start : start + len(SEGMENT_TOKENS)] for start in starts]
        on = chain(images, repeat(0))
        return [model.cut_out(one, shown, image, points[image])[0] for one, image in zip(picked, on, strict=False)]


def _segment_starts(model: TraceVLM, said: Sequence[int]) -> list[int]:
    whole = [model.reader.inputs.special[name] for name in SEGMENT_TOKENS]
    return [place for place in range(len(said)) if list(said[place : place + len(whole)]) == whole]


def _points(
    model: TraceVLM, seen: VisualFeatures, talks: Sequence[Sequence[Exchange]], prompts: Sequence[Prompt]
) -> PointBatch:
    """What the user drew in the turns that were not forgotten."""
    images = len(seen.grids)
    read = [
        ReadTalk(prompt, pointed(talk[prompt.forgotten :]), images, ())
        for talk, prompt in zip(talks, prompts, strict=True)
    ]
    return point_batch(read).to(model.device)


def _image_tokens(model: TraceVLM, seen: VisualFeatures) -> list[int]:
    return model.reader.inputs.token_counts(seen.grids)
