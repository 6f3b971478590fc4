"""Words as numbers: whole words, or pieces of words learned by byte-pair encoding.

Every vocabulary has these ids: 0 padding, 1 begin, 2 end, and pieces from 3 on. The unknown word is one of the pieces.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName, require

PAD_ID, BEGIN_ID, END_ID = 0, 1, 2
FIRST_PIECE_ID = 3
UNKNOWN = "<unk>"
KINDS = ("words", "bpe")

_FORMAT = 1
_WORD_END = "</w>"
# A run of letters and digits with what joins them inside (don't, t-shirt, 3.5), or one other sign.
_SPLIT = re.compile(r"\w+(?:['’.\-]\w+)*|[^\w\s]")
_PLAIN_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE_ENDS = ".!?"
# Signs that are written without a space before them.
_CLINGING = frozenset(".,!?;:)]}%…’'\"")


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text in pieces. ids: one per piece. owners: for each piece, the index of the word it is a part of."""

    ids: tuple[int, ...]
    owners: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spelled:
    """Pieces put together again. words: without white space. owners: for each id given, the index of its word."""

    words: tuple[str, ...]
    owners: tuple[int, ...]


class JsonFile(ABC):
    """A value that is kept as a JSON file of its own."""

    @abstractmethod
    def to_json(self) -> str: ...

    @classmethod
    @abstractmethod
    def from_json(cls, text: str) -> Self: ...

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what the ids mean."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the file whole or not at all."""
        with write_atomic(path) as file:
            file.write(self.to_json().encode("utf-8"))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote; InvalidFile says what is wrong with anything else."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise InvalidFile(path, "is not UTF-8 text") from error
        except (InvalidValue, UnknownName) as error:
            raise InvalidFile(path, str(error)) from error


@dataclass(frozen=True)
class Vocabulary(JsonFile):
    """A table of pieces; piece i has id i + 3.

    kind: "words", or "bpe" where a piece that ends a word is marked by `</w>`.
    merges: for "bpe", which two pieces join, first come first served. lowercase: whether texts are read in lower case.
    """

    kind: str
    pieces: tuple[str, ...]
    merges: tuple[tuple[str, str], ...] = ()
    lowercase: bool = True
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownName("kind of vocabulary", str(self.kind), KINDS)
        object.__setattr__(self, "pieces", tuple(self.pieces))
        object.__setattr__(self, "merges", tuple((a, b) for a, b in self.merges))
        if not self.pieces:
            raise InvalidValue("vocabulary", "has no pieces")
        for piece in self.pieces:
            if not isinstance(piece, str) or piece.split() != [piece]:
                raise InvalidValue("vocabulary", f"{piece!r} is not a piece: empty, or with white space")
        ids = {piece: FIRST_PIECE_ID + i for i, piece in enumerate(self.pieces)}
        if len(ids) != len(self.pieces):
            twice = next(piece for piece, count in Counter(self.pieces).items() if count > 1)
            raise InvalidValue("vocabulary", f"lists the piece {twice!r} twice")
        for a, b in self.merges:
            if not {a, b, a + b} <= ids.keys():
                raise InvalidValue("vocabulary", f"joins {a!r} and {b!r}, but one of them or their join is no piece")
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def of_words(
        cls, texts: Iterable[str], most: int = 10_000, min_count: int = 1, *, lowercase: bool = True
    ) -> Vocabulary:
        """The `most` most frequent words (the unknown word among them) that occur at least `min_count` times."""
        counts = Counter(token for text in texts for token in _tokens(text, lowercase))
        counts.pop(UNKNOWN, None)
        frequent = sorted((token for token, n in counts.items() if n >= min_count), key=lambda t: (-counts[t], t))
        return cls("words", (UNKNOWN, *frequent[: most - 1]), lowercase=lowercase)

    @classmethod
    def of_bpe(
        cls, texts: Iterable[str], most: int = 10_000, min_count: int = 2, *, lowercase: bool = True
    ) -> Vocabulary:
        """At most `most` pieces, learned by byte-pair encoding; pairs rarer than `min_count` are not joined."""
        tokenizers = require("tokenizers", needed_for="learning a byte-pair vocabulary", extra="models")
        learner = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token=UNKNOWN, end_of_word_suffix=_WORD_END))
        learner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=most,
            min_frequency=min_count,
            special_tokens=[UNKNOWN],
            end_of_word_suffix=_WORD_END,
            show_progress=False,
        )
        learner.train_from_iterator((" ".join(_tokens(text, lowercase)) for text in texts), trainer)
        model = json.loads(learner.to_str())["model"]
        pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
        return cls("bpe", tuple(pieces), tuple(tuple(pair) for pair in model["merges"]), lowercase)

    @classmethod
    def of_released(cls, words: Mapping[str, str]) -> Vocabulary:
        """The authors' table, {"1": "a", …, "9487": "UNK"}: id = number + 2; their 0 is begin, end and padding."""
        numbers = sorted(int(number) for number in words)
        if numbers != list(range(1, len(numbers) + 1)):
            raise InvalidValue("released vocabulary", "does not number its words 1, 2, 3 …")
        pieces = [words[str(number)] for number in numbers]
        return cls("words", tuple(UNKNOWN if piece == "UNK" else piece for piece in pieces))

    def __len__(self) -> int:
        """How many pieces there are: V of the models. Ids go up to len + 2."""
        return len(self.pieces)

    @property
    def unknown_id(self) -> int | None:
        return self._ids.get(UNKNOWN)

    @property
    def sentence_end_ids(self) -> tuple[int, ...]:
        """The pieces that end a sentence."""
        ends = (sign + (_WORD_END if self.kind == "bpe" else "") for sign in _SENTENCE_ENDS)
        return tuple(self._ids[sign] for sign in ends if sign in self._ids)

    def encode(self, words: Sequence[str]) -> Pieces:
        """The pieces of a text that is cut into words already. A word may hold signs: "image," gives two pieces."""
        ids: list[int] = []
        owners: list[int] = []
        for i, word in enumerate(words):
            found = [self._id(piece) for token in _tokens(word, self.lowercase) for piece in self._cut(token)]
            ids += found
            owners += [i] * len(found)
        return Pieces(tuple(ids), tuple(owners))

    def spell(self, ids: Sequence[int]) -> Spelled:
        """Words from ids. Signs that need no space cling to the word before them."""
        words: list[str] = []
        owners: list[int] = []
        open_word = False
        for piece in (self._piece(i) for i in ids):
            whole = self.kind == "words" or piece == UNKNOWN or piece.endswith(_WORD_END)
            surface = piece.removesuffix(_WORD_END) if self.kind == "bpe" else piece
            if words and (open_word or surface in _CLINGING):
                words[-1] += surface
            else:
                words.append(surface)
            owners.append(len(words) - 1)
            open_word = not whole
        return Spelled(tuple(words), tuple(owners))

    def text(self, ids: Sequence[int]) -> str:
        return " ".join(self.spell(ids).words)

    def to_json(self) -> str:
        content = {
            "format": _FORMAT,
            "kind": self.kind,
            "lowercase": self.lowercase,
            "pieces": self.pieces,
            "merges": self.merges,
        }
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidValue("vocabulary", f"is not JSON: {error}") from error
        wanted = {"format": int, "kind": str, "lowercase": bool, "pieces": list, "merges": list}
        if not isinstance(content, dict) or set(content) != set(wanted):
            raise InvalidValue("vocabulary", f"is not an object with exactly the keys {', '.join(wanted)}")
        for key, kind in wanted.items():
            if type(content[key]) is not kind:
                raise InvalidValue("vocabulary", f"{key!r} is not of type {kind.__name__}")
        if content["format"] != _FORMAT:
            raise InvalidValue("vocabulary", f"has format {content['format']}; this version reads {_FORMAT}")
        merges = [tuple(pair) if isinstance(pair, list) else () for pair in content["merges"]]
        if any(len(pair) != 2 or not all(isinstance(part, str) for part in pair) for pair in merges):
            raise InvalidValue("vocabulary", "a merge is not a pair of pieces")
        return cls(content["kind"], tuple(content["pieces"]), tuple(merges), content["lowercase"])

    def _cut(self, token: str) -> tuple[str, ...]:
        if self.kind == "words":
            return (token,)
        pieces = tuple(self._cutter.encode(token).tokens)
        # A token with a letter never seen is unknown as a whole: every word still ends with a piece that says so.
        return (UNKNOWN,) if UNKNOWN in pieces else pieces

    @cached_property
    def _cutter(self) -> Any:
        """The tokenizer of a byte-pair vocabulary."""
        tokenizers = require("tokenizers", needed_for="reading with a byte-pair vocabulary", extra="models")
        numbers = {piece: i for i, piece in enumerate(self.pieces)}
        merges = list(self.merges)
        return tokenizers.Tokenizer(
            tokenizers.models.BPE(numbers, merges, unk_token=UNKNOWN, end_of_word_suffix=_WORD_END, fuse_unk=True)
        )

    def _id(self, piece: str) -> int:
        found = self._ids.get(piece, self.unknown_id)
        if found is None:
            raise InvalidValue("text", f"{piece!r} is not in the vocabulary, which has no unknown word")
        return found

    def _piece(self, piece_id: int) -> str:
        if not FIRST_PIECE_ID <= piece_id < FIRST_PIECE_ID + len(self.pieces):
            raise InvalidValue("piece id", f"{piece_id} is none of {FIRST_PIECE_ID} … {len(self.pieces) + 2}")
        return self.pieces[piece_id - FIRST_PIECE_ID]


def _tokens(text: str, lowercase: bool) -> list[str]:
    return _SPLIT.findall(text.lower() if lowercase else text)


def plain_words(text: str) -> list[str]:
    """The words of a text, in lower case: runs of letters and digits, with what joins them inside (what's, t-shirt)."""
    return _PLAIN_WORD.findall(text.lower())


def owned_words(text: str) -> list[tuple[str, int]]:
    """Each of the plain words with the index of the one of `text.split()` that it comes from."""
    return [(word, i) for i, part in enumerate(text.split()) for word in plain_words(part)]


def vocabulary_of(texts: Sequence[str], least_count: int, most: int) -> Vocabulary:
    """The most frequent plain words that occur often enough, and the unknown word."""
    return Vocabulary.of_words((" ".join(plain_words(text)) for text in texts), most, least_count)
