"""PrefixDecoder: a small causal transformer that puts a vector into words.

It reads: the vector as k places, a second vector if it has one, a prompt if there is one, the begin of the text, the
text. It says the next piece at every place from the begin on. One that was made for it also attends to hidden states of
the photo, most to those of the region that the vector stands for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import BEGIN_ID, END_ID, FIRST_PIECE_ID, PAD_ID, Vocabulary
from saywhere.models.common.batches import Packed
from saywhere.models.common.kv_cache import KVCache
from saywhere.models.common.modes import eval_mode, seeded
from saywhere.models.folder import built, load_part, save_part
from saywhere.models.patchioner.config import DecoderConfig
from saywhere.models.patchioner.layers import DecoderBlock, PhotoKeys, as_vectors, initialise, unit
from saywhere.models.search import (
    GREEDY,
    GenerationConfig,
    Hypothesis,
    Quest,
    Rules,
    Steps,
    Writer,
    Written,
    search,
    search_together,
    uniform_draws,
)

__all__ = ["DecoderConfig", "GenerationConfig", "PrefixDecoder", "Writer", "Written"]

VOCABULARY = "vocabulary.json"
_KIND = "patchioner-decoder"
_ROWS = 512
"""Beams that are written at once, so that what is kept of them stays small."""


_LEAST_WEIGHT = 0.02
"""What lies outside a region is still seen, by this much of what lies in it."""


@dataclass(frozen=True, slots=True, eq=False)
class PhotoStates:
    """Photos to attend to, each for equally many texts, side by side.

    states: (photos, 1 + n, s) hidden states, the whole first. weights: (texts, n), how much each patch counts for each
    text; at least 0, of any scale.
    """

    states: Tensor
    weights: Tensor

    def bias(self) -> Tensor:
        """(texts, 1 + n) what is added to scores of attention: 0 for the whole and where a text's weight is most."""
        most = self.weights.amax(dim=1, keepdim=True).clamp(min=1e-12)
        return functional.pad((self.weights / most + _LEAST_WEIGHT).clamp(max=1).log(), (1, 0))

    def rows(self, group: Sequence[int]) -> PhotoStates:
        """The same photo for some of its texts."""
        return PhotoStates(self.states, self.weights[list(group)])


class PrefixDecoder(nn.Module):
    """GPT-2 style: learnt positions, norms first, GELU, one table for reading and saying words.

    Scores have a row for the end of the text and one for each piece: row = id − 2.
    """

    def __init__(self, config: DecoderConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        if len(vocabulary) != config.words:
            raise InvalidValue("vocabulary", f"has {len(vocabulary):,} pieces, but the config says {config.words:,}")
        self.config, self.vocabulary = config, vocabulary
        self.prefix = nn.Linear(config.vector_size, config.prefix * config.width)
        self.extra = nn.Linear(config.extra_size, config.width) if config.extra_size else None
        self.words = nn.Embedding(FIRST_PIECE_ID + config.words, config.width)
        self.positions = nn.Embedding(config.places, config.width)
        self.blocks = nn.ModuleList(
            DecoderBlock(config.width, config.heads, config.feed_forward, config.dropout, config.states_size)
            for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.width)
        self.drop = nn.Dropout(config.dropout)
        initialise(self, config.layers)

    @classmethod
    def fresh(cls, config: DecoderConfig, vocabulary: Vocabulary, seed: int) -> PrefixDecoder:
        """A network with random weights that depend on the seed alone."""
        with seeded(seed):
            return cls(config, vocabulary)

    @property
    def size(self) -> int:
        """d, numbers in the vectors it reads."""
        return self.config.vector_size

    def forward(
        self, vectors: Tensor, words: Tensor, extra: Tensor | None = None, photo_states: PhotoStates | None = None
    ) -> Tensor:
        """(m, t, V + 1) scores of what follows each of (m, t) ids. vectors: (m, d), of any length but 0.

        words: each row an optional prompt, then BEGIN_ID, then the text; padded at the end with PAD_ID.
        """
        return self.say(self.read(vectors, words, extra, photo_states))

    def read(
        self, vectors: Tensor, words: Tensor, extra: Tensor | None = None, photo_states: PhotoStates | None = None
    ) -> Tensor:
        """(m, t, width) the state after each of (m, t) ids; what comes after padding means nothing."""
        x = self._embedded(vectors, words, extra)
        packed = Packed.of(functional.pad(words != PAD_ID, (x.shape[1] - words.shape[1], 0), value=True))
        x = packed.pack(x)
        for block, photo in zip(self.blocks, self.photo_keys(photo_states), strict=True):
            x = block(x, packed=packed, photo=photo)
        return packed.unpack(self.norm(x))[:, self.config.before_words :]

    def say(self, states: Tensor) -> Tensor:
        """(…, V + 1) scores from (…, width) states."""
        return functional.linear(states, self.words.weight[END_ID:])

    def photo_keys(self, photo_states: PhotoStates | None) -> list[PhotoKeys | None]:
        """What each block reads of the photos."""
        if (photo_states is None) == (self.config.states_size > 0):
            expected = f"hidden states of {self.config.states_size} numbers" if self.config.states_size else "no states"
            raise InvalidValue("reading", f"this decoder was made for {expected}")
        if photo_states is None:
            return [None] * len(self.blocks)
        bias = photo_states.bias()
        looks = [block.look for block in self.blocks if isinstance(block, DecoderBlock) and block.look is not None]
        return [look.photo(photo_states.states, bias) for look in looks]

    def loss(
        self,
        vectors: Tensor,
        words: Tensor,
        extra: Tensor | None = None,
        smoothing: float = 0.0,
        photo_states: PhotoStates | None = None,
    ) -> Tensor:
        """The mean cross entropy of the pieces and ends of all texts. words: as in `forward`, ends included.

        Prompts and padding are read, not learnt to say. smoothing: of the labels.
        """
        read, said = words[:, :-1], words[:, 1:]
        counted = text_places(words)
        states = self.read(vectors, read, extra, photo_states)[counted]
        # Only places that count are brought to the vocabulary, which is most of the work.
        return functional.cross_entropy(self.say(states), said[counted] - END_ID, label_smoothing=smoothing)

    def write(
        self,
        vectors: ArrayLike,
        how: GenerationConfig = GREEDY,
        prompts: Sequence[str] | None = None,
        extra: ArrayLike | None = None,
        photo_states: PhotoStates | None = None,
    ) -> list[Written]:
        """A text for each of (m, d) vectors: the same whether it is written alone or among others.

        prompts: for each vector a text to start from, "" for none; for a decoder that learnt with prompts.
        extra: (m, e) second vectors, for a decoder that has them. photo_states: of the one photo that all vectors
        are of, for a decoder that attends to it.
        """
        rows = as_vectors(vectors, "vectors", self.config.vector_size)
        seconds = self._checked_extra(extra, len(rows))
        begins = self.begins(prompts, len(rows))
        texts: list[Written | None] = [None] * len(rows)
        with eval_mode(self):
            for group in _groups([len(begin) for begin in begins], self._at_once(how)):
                second = None if seconds is None else seconds[group].to(self.device)
                part = None if photo_states is None else photo_states.rows(group)
                said = self._search(rows[group].to(self.device), [begins[i] for i in group], second, how, part)
                for i, one in zip(group, said, strict=True):
                    texts[i] = self._written(one)
        return [text for text in texts if text is not None]

    def draw(
        self,
        vectors: ArrayLike,
        count: int,
        how: GenerationConfig,
        prompts: Sequence[str] | None = None,
        photo_states: PhotoStates | None = None,
    ) -> list[list[Written]]:
        """`count` texts for each of (m, d) vectors: what `write` draws with the seed of `how` and those that follow."""
        return self._drawn(vectors, [(how, count)], prompts, photo_states)[0]

    def write_and_draw(
        self,
        vectors: ArrayLike,
        careful: GenerationConfig,
        count: int,
        drawing: GenerationConfig,
        prompts: Sequence[str] | None = None,
        photo_states: PhotoStates | None = None,
    ) -> tuple[list[Written], list[list[Written]]]:
        """What `write` gives as `careful` says and `draw` as `drawing` says, but for rounding, at less than their cost:
        what comes before the text is read once, and all texts go on together."""
        if careful.method == "nucleus":
            raise InvalidValue("careful writing", "leaves nothing to chance, but the method is 'nucleus'")
        written, drawn = self._drawn(vectors, [(careful, 1), (drawing, count)], prompts, photo_states)
        return [text for [text] in written], drawn

    def _drawn(
        self,
        vectors: ArrayLike,
        ways: Sequence[tuple[GenerationConfig, int]],
        prompts: Sequence[str] | None,
        photo_states: PhotoStates | None,
    ) -> list[list[list[Written]]]:
        """For each way, and each of (m, d) vectors, so many texts; the last way is the one that draws."""
        how, count = ways[-1]
        if how.method != "nucleus":
            raise InvalidValue("writing method", f"is {how.method!r}; texts are drawn by 'nucleus'")
        if count < 1:
            raise InvalidValue("count", f"is {count}, not at least 1")
        rows = as_vectors(vectors, "vectors", self.config.vector_size)
        begins = self.begins(prompts, len(rows))
        most = [one.most_words(self.config.max_words) for one, _ in ways]
        draws = {
            begin: torch.cat([uniform_draws([_key(begin)], how.seed + number, most[-1]) for number in range(count)])
            for begin in set(begins)
        }
        at_once = max(1, _ROWS // sum(times * (one.beams if one.method == "beam" else 1) for one, times in ways))
        texts: list[list[list[Written]]] = [[[] for _ in rows] for _ in ways]
        with eval_mode(self):
            for group in _groups([len(begin) for begin in begins], at_once):
                begin = torch.tensor([begins[i] for i in group], device=self.device)
                part = None if photo_states is None else photo_states.rows(group)
                quests = []
                for (one, times), longest in zip(ways, most, strict=True):
                    # All texts of one vector go on from the same start.
                    starts = torch.arange(len(group), device=self.device).repeat_interleave(times)
                    chances = torch.cat([draws[begins[i]] for i in group]) if one.method == "nucleus" else None
                    quests.append(Quest(self._rules(one, longest), starts, chances))
                steps = self.steps(rows[group].to(self.device), begin, max(most), photo_states=part)
                for way, (said, (_, times)) in enumerate(zip(search_together(steps, quests), ways, strict=True)):
                    for place, i in enumerate(group):
                        texts[way][i] = [self._written(text) for text in said[place * times : (place + 1) * times]]
        return texts

    def save_pretrained(self, folder: str | Path, *, half: bool = False, int8: bool = False) -> None:
        """Weights, config and vocabulary into a folder. half, int8: see `save_part`; it loads as float32."""
        files = {VOCABULARY: self.vocabulary.to_json().encode()}
        save_part(folder, _KIND, self.config.to_dict(), self.state_dict(), files, half=half, int8=int8)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> PrefixDecoder:
        """A decoder from a folder, or from the hub ("owner/name"), at rest."""
        part = load_part(source, _KIND, revision)
        try:
            config = DecoderConfig.from_dict(part.config)
            vocabulary = Vocabulary.from_json(part.files[VOCABULARY].decode())
            return built(lambda: cls(config, vocabulary), part).eval()
        except (InvalidValue, UnknownName, KeyError, UnicodeDecodeError) as error:
            raise InvalidFile(part.folder, f"is not a decoder: {error}") from error

    def begins(self, prompts: Sequence[str] | None, count: int) -> list[tuple[int, ...]]:
        """For each of `count` vectors the ids up to and with the begin of its text."""
        if prompts is None:
            return [(BEGIN_ID,)] * count
        if len(prompts) != count:
            raise InvalidValue("prompts", f"there are {len(prompts)} for {count} vectors")
        begins = [(*self.vocabulary.encode(prompt.split()).ids, BEGIN_ID) for prompt in prompts]
        longest = max((len(begin) - 1 for begin in begins), default=0)
        if longest > self.config.prompt_words:
            reason = f"have up to {longest} pieces; the decoder learnt with up to {self.config.prompt_words}"
            raise InvalidValue("prompts", reason)
        return begins

    def steps(
        self,
        vectors: Tensor,
        words: Tensor,
        most: int,
        extra: Tensor | None = None,
        photo_states: PhotoStates | None = None,
    ) -> Steps:
        """This decoder after (m, d) vectors and (m, t) ids, ready to go on for at most `most` words. photo_states: of
        one photo."""
        return _DecoderSteps(self, self._embedded(vectors, words, extra), most, self.photo_keys(photo_states))

    @property
    def device(self) -> torch.device:
        return self.words.weight.device

    def _embedded(self, vectors: Tensor, words: Tensor, extra: Tensor | None) -> Tensor:
        """(m, places, width) everything that is read, before the blocks."""
        config = self.config
        # Elements of size about 1, so that the map learns as fast as those inside the network.
        scaled = unit(vectors) * math.sqrt(config.vector_size)
        parts = [self.prefix(scaled).view(len(vectors), config.prefix, config.width)]
        if (extra is None) != (self.extra is None):
            raise InvalidValue("extra", f"vectors of {config.extra_size} numbers are what this decoder was made for")
        if self.extra is not None and extra is not None:
            parts.append(self.extra(extra)[:, None])
        x = torch.cat([*parts, self.words(words)], dim=1)
        if x.shape[1] > config.places:
            reason = f"take {x.shape[1]} places with the vectors; the decoder has {config.places}"
            raise InvalidValue("words", reason)
        embedded: Tensor = self.drop(x + self.positions.weight[: x.shape[1]])
        return embedded

    def _search(
        self,
        vectors: Tensor,
        begins: list[tuple[int, ...]],
        extra: Tensor | None,
        how: GenerationConfig,
        photo_states: PhotoStates | None,
    ) -> list[Hypothesis]:
        most = how.most_words(self.config.max_words)
        words = torch.tensor(begins, device=vectors.device)
        steps = self.steps(vectors, words, most, extra, photo_states)
        rules = self._rules(how, most)
        if how.method != "nucleus":
            return search(steps, rules)
        return search(steps, rules, uniform_draws([_key(begin) for begin in begins], how.seed, most))

    def _rules(self, how: GenerationConfig, most: int) -> Rules:
        unknown = self.vocabulary.unknown_id
        return Rules(how, most, (0,), () if unknown is None else (unknown - END_ID,))

    def _checked_extra(self, extra: ArrayLike | None, count: int) -> Tensor | None:
        if extra is None:
            return None
        checked = as_vectors(extra, "extra vectors", self.config.extra_size)
        if len(checked) != count:
            raise InvalidValue("extra vectors", f"there are {len(checked)} for {count} vectors")
        return checked

    def _at_once(self, how: GenerationConfig) -> int:
        return max(1, _ROWS // (how.beams if how.method == "beam" else 1))

    def _written(self, said: Hypothesis) -> Written:
        text = self.vocabulary.text([token + END_ID for token in said.tokens])
        return Written(text, said.score, said.logprobs, said.ended)


def _key(begin: tuple[int, ...]) -> bytes:
    """What the chances of a text depend on besides the seed.

    Not its vector: among others that is rounded otherwise, and a change in its last digit would draw another text.
    """
    return repr(begin).encode()


class _DecoderSteps(Steps):
    """A decoder, one word at a time, with the keys and values of earlier places kept."""

    def __init__(self, model: PrefixDecoder, read: Tensor, most: int, photo: list[PhotoKeys | None]) -> None:
        self.model, self.place, self.photo = model, read.shape[1], photo
        self._read = read
        self.caches = [KVCache(self.place + most) for _ in model.blocks]

    def start(self) -> Tensor:
        return self._scores(self._read)

    def advance(self, tokens: Tensor) -> Tensor:
        x = self.model.words(tokens + END_ID) + self.model.positions.weight[self.place]
        self.place += 1
        return self._scores(x[:, None])

    def reorder(self, rows: Tensor) -> None:
        for cache in self.caches:
            cache.reorder(rows)
        self.photo = [one if one is None else one._replace(bias=one.bias[rows]) for one in self.photo]

    def _scores(self, x: Tensor) -> Tensor:
        for block, cache, photo in zip(self.model.blocks, self.caches, self.photo, strict=True):
            x = block(x, cache, photo=photo)
        return self.model.say(self.model.norm(x[:, -1]))


def text_places(words: Tensor) -> Tensor:
    """(m, t − 1) which places of (m, t) ids say a piece of the text or its end, rather than of a prompt or padding."""
    began = (words[:, :-1] == BEGIN_ID).cumsum(dim=1) > 0
    return began & (words[:, 1:] != PAD_ID)


def _groups(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Indices with the same length together, at most so many at once: no padding, so nothing can leak."""
    by_length: dict[int, list[int]] = {}
    for i, length in enumerate(lengths):
        by_length.setdefault(length, []).append(i)
    return [group[i : i + most] for group in by_length.values() for i in range(0, len(group), most)]
