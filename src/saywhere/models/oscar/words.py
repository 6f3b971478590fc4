"""Text as Oscar's ids: our own vocabulary of words, or the WordPiece tokenizer of a BERT, behind one protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from saywhere.core.errors import InvalidValue, require
from saywhere.language.vocabulary import BEGIN_ID, END_ID, FIRST_PIECE_ID, PAD_ID, Vocabulary

MARKERS = 4
"""[PAD], [CLS], [SEP] and [MASK]."""

VOCABULARY, TOKENIZER = "vocabulary.json", "tokenizer.json"
_NAMES = ("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]")


class Words(Protocol):
    """What the ids of the word table mean. never_generated: markers and the unknown word."""

    @property
    def size(self) -> int: ...

    @property
    def pad_id(self) -> int: ...

    @property
    def cls_id(self) -> int: ...

    @property
    def sep_id(self) -> int: ...

    @property
    def mask_id(self) -> int: ...

    @property
    def never_generated(self) -> tuple[int, ...]: ...

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what the ids mean."""
        ...

    def encode(self, text: str) -> tuple[int, ...]:
        """The pieces of a text, without markers."""
        ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def files(self) -> dict[str, bytes]:
        """What to keep beside the weights; see `words_from`."""
        ...


class OwnWords:
    """A vocabulary's ids, with [CLS] for its begin, [SEP] for its end, and [MASK] after all its pieces."""

    pad_id, cls_id, sep_id = PAD_ID, BEGIN_ID, END_ID

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.mask_id = FIRST_PIECE_ID + len(vocabulary)
        self.size = len(vocabulary) + MARKERS
        unknown = () if vocabulary.unknown_id is None else (vocabulary.unknown_id,)
        self.never_generated: tuple[int, ...] = (self.pad_id, self.cls_id, self.mask_id, *unknown)

    @property
    def fingerprint(self) -> str:
        return self.vocabulary.fingerprint

    def encode(self, text: str) -> tuple[int, ...]:
        return self.vocabulary.encode(text.split()).ids

    def decode(self, ids: Sequence[int]) -> str:
        return self.vocabulary.text(ids)

    def files(self) -> dict[str, bytes]:
        return {VOCABULARY: self.vocabulary.to_json().encode()}


class WordPieces:
    """A BERT's tokenizer. tokenizer: one of the package tokenizers, as transformers keeps it in tokenizer.json."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        found = {name: tokenizer.token_to_id(name) for name in _NAMES}
        absent = [name for name, number in found.items() if number is None]
        if absent:
            raise InvalidValue("tokenizer", f"has no {', '.join(absent)}", "is it a BERT's?")
        self.pad_id, self.cls_id, self.sep_id, self.mask_id = (int(found[name]) for name in _NAMES[:4])
        self.never_generated: tuple[int, ...] = (self.pad_id, self.cls_id, self.mask_id, int(found["[UNK]"]))
        self.size = int(tokenizer.get_vocab_size())

    @classmethod
    def from_json(cls, text: str) -> WordPieces:
        tokenizers = require("tokenizers", needed_for="reading with a BERT's tokenizer", extra="models")
        # The package raises plain Exception for a file that is no tokenizer; `words_from` has checked its SHA-256.
        return cls(tokenizers.Tokenizer.from_str(text))

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(self._tokenizer.to_str().encode()).hexdigest()

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def files(self) -> dict[str, bytes]:
        return {TOKENIZER: self._tokenizer.to_str().encode()}


def words_from(files: Mapping[str, bytes]) -> Words:
    """What `Words.files` gave, read again."""
    if VOCABULARY in files:
        return OwnWords(Vocabulary.from_json(files[VOCABULARY].decode()))
    if TOKENIZER in files:
        return WordPieces.from_json(files[TOKENIZER].decode())
    raise InvalidValue("words", f"are in neither {VOCABULARY} nor {TOKENIZER}")
