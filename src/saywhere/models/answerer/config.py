"""What shape the answering network has: everything that its weights fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from saywhere.models.common.config import ShapeConfig


@dataclass(frozen=True, slots=True)
class AnswererConfig(ShapeConfig):
    """answers: how many can be given. region_size: numbers in the feature of a place; the last `kinds` of them say
    what kind of place it is, one of them 1. text_size: numbers that the text encoder gives for each token. second_size:
    numbers that a second look gives for each of its places; 0: none is read.

    width, heads, layers, inner: of the blocks; inner is the width between their two layers. max_tokens: of a question,
    the two around it included; the rest is cut off. counters: things that can be counted for one question. dropout: in
    the blocks. answer_dropout: before the answers. blind: the photo is not read, to know how much a question alone
    gives away.
    """

    answers: int
    region_size: int
    kinds: int = 3
    text_size: int = 384
    width: int = 256
    heads: int = 4
    layers: int = 3
    inner: int = 512
    max_tokens: int = 24
    counters: int = 8
    dropout: float = 0.1
    answer_dropout: float = 0.3
    blind: bool = False
    second_size: int = 0
    family: ClassVar[str] = "answerer"
    may_be_zero: ClassVar[tuple[str, ...]] = ("second_size",)
    added: ClassVar[tuple[str, ...]] = ("second_size",)
