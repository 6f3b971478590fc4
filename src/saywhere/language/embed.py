"""Texts as vectors: one row of length 1 for each text. Importing this loads no torch; opening an encoder does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from saywhere.assets import fetch, find
from saywhere.core.errors import InvalidValue, UnknownName, require
from saywhere.core.types import Progress

if TYPE_CHECKING:
    from torch import Tensor

Vectors = NDArray[np.float32]
"""Called with how many texts are done, and how many there are."""

MINILM = "all-minilm-l6-v2"
_MINILM_TOKENS = 256
_KINDS = {"clip": "clip:CHECKPOINT", "talk2dino": "talk2dino:CHECKPOINT+PROJECTION.safetensors"}


class TextEncoder(Protocol):
    """Anything that turns texts into vectors whose cosines say how alike the texts are."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int:
        """d, the numbers per text."""

    @property
    def fingerprint(self) -> dict[str, str | int]:
        """What the vectors depend on. Equal means equal vectors."""

    def embed(self, texts: Sequence[str], *, batch: int = 64, progress: Progress | None = None) -> Vectors:
        """(n, d) rows of length 1, in the order of the texts."""


def open_text_encoder(name: str = MINILM) -> TextEncoder:
    """An encoder by name; what it needs is fetched if it is not there.

    "all-minilm-l6-v2"             MiniLM sentence vectors, 384 numbers
    "clip:CHECKPOINT"              the text side of a CLIP in a folder or on the hub: clip:openai/clip-vit-base-patch16
    "talk2dino:CHECKPOINT+FILE"    the same, taken on into DINOv2's space by a Talk2DINO projection (safetensors)
    """
    kind, colon, source = name.partition(":")
    if not colon and name == MINILM:
        _require_models(name)
        return MiniLM(fetch(MINILM), find(MINILM).files[-1].sha256)
    if not colon or kind not in _KINDS:
        raise UnknownName("text encoder", name, (MINILM, *_KINDS.values()))
    if not source:
        raise InvalidValue("text encoder", f"{name!r} names no checkpoint", f"write {_KINDS[kind]}")
    _require_models(name)
    from saywhere.language.clip_text import open_clip_text, open_talk2dino_text

    return open_clip_text(source) if kind == "clip" else open_talk2dino_text(source)


def open_token_encoder() -> MiniLM:
    """What reads texts token by token; fetched if it is not there."""
    _require_models(MINILM)
    return MiniLM(fetch(MINILM), find(MINILM).files[-1].sha256)


class MiniLM:
    """all-MiniLM-L6-v2 (Reimers & Gurevych): the mean of the last layer over a text's tokens, at most 256 of them.

    folder: with config.json, tokenizer.json and model.safetensors. sha256: of the weights, for the record.
    """

    name = MINILM

    def __init__(self, folder: str | PathLike[str], sha256: str) -> None:
        from saywhere.language.bert import load_bert

        self.network = load_bert(Path(folder))
        self.sha256 = sha256
        self._tokenizer = open_tokenizer(Path(folder) / "tokenizer.json", _MINILM_TOKENS)

    @property
    def size(self) -> int:
        return self.network.size

    @property
    def fingerprint(self) -> dict[str, str | int]:
        return {"text_encoder": self.name, "weights_sha256": self.sha256, "most_tokens": _MINILM_TOKENS}

    def embed(self, texts: Sequence[str], *, batch: int = 64, progress: Progress | None = None) -> Vectors:
        """(n, 384) rows of length 1, in the order of the texts."""
        return embed_by_length(texts, self._tokenizer, self._pooled, self.size, batch, progress)

    def states(
        self, texts: Sequence[str], *, most: int = _MINILM_TOKENS, batch: int = 64, layers: int | None = None
    ) -> list[Vectors]:
        """For each text (t, 384), the last layer at its tokens, the two around it included, at most `most` of them.
        layers: what so many layers made of them instead."""
        import torch

        checked_texts(texts, batch)
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        cut = [one if len(one) <= most else [*one[: most - 1], one[-1]] for one in ids]
        order = sorted(range(len(cut)), key=lambda i: len(cut[i]))
        found: list[Vectors] = [np.zeros((0, self.size), np.float32)] * len(cut)
        with torch.inference_mode():
            for first in range(0, len(order), batch):
                part = order[first : first + batch]
                padded, mask = _padded([cut[i] for i in part])
                states = self.network(padded, mask, layers).float().cpu().numpy()
                for row, number in enumerate(part):
                    found[number] = states[row, : len(cut[number])]
        return found

    def _pooled(self, ids: Tensor, mask: Tensor) -> Tensor:
        states = self.network(ids, mask)
        weights = mask.unsqueeze(-1).to(states.dtype)
        pooled: Tensor = (states * weights).sum(dim=1) / weights.sum(dim=1)
        return pooled


def embed_by_length(
    texts: Sequence[str],
    tokenizer: Any,
    vectors_of: Callable[[Tensor, Tensor], Tensor],
    size: int,
    batch: int,
    progress: Progress | None,
) -> Vectors:
    """(n, size) rows of length 1. Texts of like length go together, so that little is spent on padding.

    vectors_of: (B, T) token ids and their mask, 1 where there is a token → (B, size).
    """
    import torch

    checked_texts(texts, batch)
    ids = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    rows = np.empty((len(ids), size), dtype=np.float32)
    with torch.inference_mode():
        for first in range(0, len(order), batch):
            part = order[first : first + batch]
            found = vectors_of(*_padded([ids[i] for i in part])).float()
            rows[part] = torch.nn.functional.normalize(found, dim=-1).cpu().numpy()
            if progress is not None:
                progress("embedding", first + len(part), len(order))
    return rows


def _padded(ids: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
    """(B, T) token ids and their mask."""
    import torch

    longest = max(map(len, ids))
    padded = torch.tensor([one + [0] * (longest - len(one)) for one in ids])
    return padded, torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in ids])


def checked_texts(texts: Sequence[str], batch: int) -> None:
    """Refuse what cannot be embedded, saying which text it is."""
    if isinstance(texts, str):
        raise InvalidValue("texts", "are one string", "give a list of strings")
    if batch < 1:
        raise InvalidValue("batch", f"is {batch}, not at least 1")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidValue("texts", f"number {place} is a {type(text).__name__}, not a string")
        if not text.strip():
            raise InvalidValue("texts", f"number {place} is empty")


def open_tokenizer(path: Path, most_tokens: int) -> Any:
    """A tokenizer from tokenizer.json that cuts long texts, signs at begin and end included, and never pads."""
    tokenizers = require("tokenizers", needed_for="reading texts", extra="models")
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.enable_truncation(most_tokens)
    tokenizer.no_padding()
    return tokenizer


def _require_models(name: str) -> None:
    require("torch", needed_for=f"the text encoder {name!r}", extra="models")
