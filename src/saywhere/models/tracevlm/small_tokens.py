"""The tokens of the small body: special ones, pieces of words, and a thousand coordinates, in this order.

What people type goes through the pieces alone, so that it can never become a special token or a coordinate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from saywhere.core.errors import InvalidValue, require
from saywhere.core.trajectory import BINS
from saywhere.models.tracevlm.qwen import SEGMENT_TOKENS, TRAJECTORY_TOKENS

PADDING: Final = "<|pad|>"
USER_TURN: Final = "<|user|>"
ASSISTANT_TURN: Final = "<|assistant|>"
END: Final = "<|end|>"
IMAGE: Final = "<|image_pad|>"
BOX: Final = ("<|box_start|>", "<|box_end|>")
SPECIAL: Final = (PADDING, USER_TURN, ASSISTANT_TURN, END, IMAGE, *BOX, *TRAJECTORY_TOKENS, *SEGMENT_TOKENS)
_EXTRA = "models"


class SmallTokenizer:
    """pieces: a byte-level BPE of the library `tokenizers`, without special tokens of its own.

    >>> tokens = SmallTokenizer.learnt(["a dog and a dog"], 300)
    >>> tokens.text(tokens.words("a dog <traj>"))
    'a dog <traj>'
    >>> tokens.text([tokens.special["<traj>"], *tokens.coordinates([(0, 999)]), tokens.special["</traj>"]])
    '<traj>(0,999)</traj>'
    """

    def __init__(self, pieces: Any) -> None:
        self._pieces = pieces
        self.special = {name: number for number, name in enumerate(SPECIAL)}
        self._first_piece = len(SPECIAL)
        self.first_coordinate = self._first_piece + int(pieces.get_vocab_size(with_added_tokens=False))

    def __len__(self) -> int:
        return self.first_coordinate + BINS

    @classmethod
    def learnt(cls, texts: Iterable[str], size: int) -> SmallTokenizer:
        """The commonest pieces of some texts: `size` of them, of which 256 are bytes."""
        library = require("tokenizers", needed_for="learning pieces of words", extra=_EXTRA)
        pieces = library.Tokenizer(library.models.BPE())
        pieces.normalizer = library.normalizers.NFC()
        pieces.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        pieces.decoder = library.decoders.ByteLevel()
        alphabet = library.pre_tokenizers.ByteLevel.alphabet()
        trainer = library.trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
        pieces.train_from_iterator(texts, trainer)
        return cls(pieces)

    @classmethod
    def from_json(cls, text: str) -> SmallTokenizer:
        library = require("tokenizers", needed_for="reading with the small body", extra=_EXTRA)
        try:
            pieces = library.Tokenizer.from_str(text)
        except Exception as error:  # the library raises nothing more special
            raise InvalidValue("tokenizer", f"cannot be read: {error}") from error
        if pieces.get_vocab_size(with_added_tokens=True) != pieces.get_vocab_size(with_added_tokens=False):
            raise InvalidValue("tokenizer", "has special tokens of its own, which words could become")
        return cls(pieces)

    def to_json(self) -> str:
        return str(self._pieces.to_str())

    def words(self, text: str) -> list[int]:
        """The ids of words; none is special, whatever the text looks like."""
        return [self._first_piece + number for number in self._pieces.encode(text).ids]

    def coordinates(self, bins_xy: Iterable[Sequence[int]]) -> list[int]:
        """Two ids for each point."""
        return [self.first_coordinate + int(number) for point in bins_xy for number in point]

    def text(self, ids: Sequence[int]) -> str:
        """What ids say: special tokens by name, and runs of coordinates as points."""
        said: list[str] = []
        words: list[int] = []
        numbers: list[int] = []
        for number in ids:
            if number >= self.first_coordinate:
                said += self._flushed(words)
                numbers.append(number - self.first_coordinate)
            elif number >= self._first_piece:
                said += _points(numbers)
                words.append(number - self._first_piece)
            else:
                said += [*self._flushed(words), *_points(numbers), SPECIAL[number]]
        return "".join([*said, *self._flushed(words), *_points(numbers)])

    def _flushed(self, words: list[int]) -> list[str]:
        said = [str(self._pieces.decode(words, skip_special_tokens=False))] if words else []
        words.clear()
        return said


def _points(numbers: list[int]) -> list[str]:
    """Coordinates as text; one without its partner stays alone, which the parser names."""
    pairs = [f"({x},{y})" for x, y in zip(numbers[::2], numbers[1::2], strict=False)]
    alone = [f"({numbers[-1]}"] if len(numbers) % 2 else []
    numbers.clear()
    return [",".join([*pairs, *alone])] if pairs or alone else []
