"""Texts embedded wherever an engine works: in this process, in several, on a Ray cluster, with the same vectors.

What a text is padded to depends on those beside it, and so does the last bit of its vector. Texts are therefore cut
into the same shards wherever they are embedded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from saywhere.core.types import Progress
from saywhere.engine import Engine, Options, results_of
from saywhere.language import embed
from saywhere.language.embed import TextEncoder, Vectors, checked_texts

_SHARD = 1024
TextShard = tuple[int, tuple[str, ...]]
"""The place of the first text among all, and the texts."""


@dataclass
class EmbedTexts:
    """A stage: the vectors of some texts. encoder: as `open_text_encoder` takes it. batch: texts at a time."""

    encoder: str
    batch: int
    opened: TextEncoder = field(init=False, repr=False)

    def open(self) -> TextEncoder:
        """The encoder itself."""
        return embed.open_text_encoder(self.encoder)

    def setup(self) -> None:
        """Open the encoder, in the worker."""
        self.opened = self.open()

    def __call__(self, shard: TextShard, /) -> Vectors:
        return self.opened.embed(shard[1], batch=self.batch)


class MappedEncoder:
    """A text encoder whose texts are embedded by an engine. stage: what each of its workers does."""

    def __init__(self, name: str, engine: Engine, stage: type[EmbedTexts] = EmbedTexts) -> None:
        self._encoder, self._engine, self._stage = name, engine, stage
        self._here = stage(name, 1).open()

    @property
    def name(self) -> str:
        return self._here.name

    @property
    def size(self) -> int:
        """The numbers per text."""
        return self._here.size

    @property
    def fingerprint(self) -> dict[str, str | int]:
        """What the vectors depend on."""
        return self._here.fingerprint

    def embed(self, texts: Sequence[str], *, batch: int = 64, progress: Progress | None = None) -> Vectors:
        """(n, d) rows of length 1, in the order of the texts."""
        checked_texts(texts, batch)
        vectors = np.empty((len(texts), self.size), dtype=np.float32)
        shards: list[TextShard] = [(at, tuple(texts[at : at + _SHARD])) for at in range(0, len(texts), _SHARD)]
        found = self._engine.map(self._stage(self._encoder, batch), shards, Options(name=lambda shard: str(shard[0])))
        for (at, part), rows in zip(shards, results_of(found), strict=True):
            vectors[at : at + len(part)] = rows
            if progress is not None:
                progress("embedding texts", at + len(part), len(texts))
        return vectors
