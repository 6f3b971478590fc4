"""Turns as the ids that the model reads: through the base's own chat template, and without letting words pretend."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from saywhere.core import Box, InvalidValue, Trace
from saywhere.core.trajectory import to_text
from saywhere.models.tracevlm.examples import ASSISTANT, USER, Exchange, Part, SegmentTarget
from saywhere.models.tracevlm.qwen import SEGMENT_TOKENS, TRAJECTORY_TOKENS, QwenInput
from saywhere.models.tracevlm.trajectory import Trajectory

# Stand in the template for what is said, which is put in as ids afterwards: no word of it can become a special token.
_MARK = "\ue000{}\ue001"
_MARKS = re.compile("\ue000([0-9]+)\ue001")
_OPEN, _CLOSE = TRAJECTORY_TOKENS


@dataclass(frozen=True, slots=True)
class Prompt:
    """ids: of everything. learnt: which of them the assistant says. targets: where the six tokens of each mask begin.
    forgotten: turns that had no room."""

    ids: list[int]
    learnt: list[bool]
    targets: list[int]
    forgotten: int = 0


class PromptReader:
    """Turns into ids. context: how many at most; 0 for as many as the base can read."""

    def __init__(self, inputs: QwenInput, context: int = 0) -> None:
        self.inputs, self._tokenizer, self._special = inputs, inputs.tokenizer, inputs.special
        self.context = min(context or inputs.context, inputs.context)

    def read(self, turns: Sequence[Exchange], image_tokens: Sequence[int], room: int = 0) -> Prompt:
        """The newest turns that leave `room` for an answer; the oldest go, two by two. image_tokens: of each image;
        all stand before the first words."""
        for forgotten in range(0, len(turns), 2):
            ids, learnt, targets = self._encoded(turns[forgotten:], image_tokens)
            if len(ids) + room <= self.context:
                return Prompt(ids, learnt, targets, forgotten)
        reason = f"{len(ids):,} tokens with {sum(image_tokens):,} of images do not fit into {self.context:,}"
        raise InvalidValue("prompt", reason, "shorten the question, or make the photo smaller")

    def text(self, ids: Sequence[int]) -> str:
        """What was said, special tokens too."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    @property
    def ends(self) -> tuple[int, ...]:
        """Tokens that end an answer."""
        return tuple({self._tokenizer.eos_token_id, self._tokenizer.convert_tokens_to_ids("<|im_end|>")} - {None})

    @property
    def size(self) -> int:
        """Tokens in all."""
        return len(self._tokenizer)

    @property
    def sentence_ends(self) -> tuple[int, ...]:
        """Tokens that end a sentence."""
        ids = [self._tokenizer.encode(sign, add_special_tokens=False) for sign in (".", "!", "?")]
        return tuple(found[0] for found in ids if len(found) == 1)

    @property
    def unsayable(self) -> tuple[int, ...]:
        """Tokens that no answer holds."""
        return (self._special["<|image_pad|>"],)

    def parts(self, parts: Sequence[Part]) -> tuple[list[int], list[int]]:
        """The ids of what is said, and where in them masks begin."""
        ids: list[int] = []
        targets = []
        for part in parts:
            ids += self._part(part)
            if isinstance(part, SegmentTarget):
                targets.append(len(ids) - len(SEGMENT_TOKENS))
        return ids, targets

    def _encoded(
        self, turns: Sequence[Exchange], image_tokens: Sequence[int]
    ) -> tuple[list[int], list[bool], list[int]]:
        ids: list[int] = []
        learnt: list[bool] = []
        targets: list[int] = []
        counts = iter(image_tokens)
        ended = False  # whether the assistant has just said all; the token that ends it is learnt too
        for number, piece in enumerate(_MARKS.split(self._rendered(turns, len(image_tokens)))):
            if number % 2:
                turn = turns[int(piece)]
                ended = turn.role == ASSISTANT
                new, starts = self.parts(turn.parts)
                targets += [len(ids) + start for start in starts]
                learnt += [ended] * len(new)
            else:
                new = self._template(piece, counts)
                learnt += [ended and place == 0 for place in range(len(new))]
            ids += new
        return ids, learnt, targets

    def _rendered(self, turns: Sequence[Exchange], images: int) -> str:
        messages = []
        for number, turn in enumerate(turns):
            shown = [{"type": "image"}] * images if number == 0 else []
            messages.append({"role": turn.role, "content": [*shown, {"type": "text", "text": _MARK.format(number)}]})
        asks = turns[-1].role == USER
        return str(self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=asks))

    def _template(self, piece: str, counts: Iterator[int]) -> list[int]:
        image = self._special["<|image_pad|>"]
        ids: list[int] = []
        for token in self._tokenizer.encode(piece, add_special_tokens=False):
            ids += [image] * next(counts) if token == image else [token]
        return ids

    def _part(self, part: Part) -> list[int]:
        special = self._special
        if isinstance(part, str):
            return self._words(part)
        if isinstance(part, SegmentTarget):
            return [*self._number(part.image), *(special[name] for name in SEGMENT_TOKENS)]
        if isinstance(part, Box):
            corners = Trace([(part.x1, part.y1, 0.0), (part.x2, part.y2, 0.0)])
            return [special["<|box_start|>"], *self._words(_points(corners)), special["<|box_end|>"]]
        return self._trajectory(part)

    def _trajectory(self, part: Trajectory) -> list[int]:
        """One after another for each run of frames; on the first image alone without its number."""
        ids: list[int] = []
        runs = part.runs()
        for frame, trace in runs:
            ids += self._number(frame, always=len(runs) > 1)
            ids += [self._special[_OPEN], *self._words(_points(trace)), self._special[_CLOSE]]
        return ids

    def _number(self, image: int, *, always: bool = False) -> list[int]:
        """Says which image something is on; of the first nothing is said, unless something goes on from there."""
        return self._words(f"{image + 1}:") if image or always else []

    def _words(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        return ids


def _points(trace: Trace) -> str:
    return to_text(trace).removeprefix(_OPEN).removesuffix(_CLOSE)
