"""Which box of a photo an expression means: "the woman in red on the left", "second horse from the right".

    referrer = Referrer.from_pretrained("folder")
    referrer.refer(candidates, "second horse from the right", reader)      # Referred(place=3, there=0.91)

The network reads all boxes that a photo offers beside the words of the expression, so that relations can be learnt, and
gives each box a score, and one more to "it is not there".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from saywhere.core import InvalidFile, InvalidValue
from saywhere.core.types import Floats32
from saywhere.language.coco_aliases import classes_named
from saywhere.language.vocabulary import PAD_ID, Vocabulary, plain_words
from saywhere.models.folder import built, load_part, save_part
from saywhere.models.patchioner.candidates import COLOURS, STANDING, WHOLE, Candidates, standing

VOCABULARY = "vocabulary.json"
_KIND = "patchioner-referring"
_NAMED = 3
"""Whether the expression names what the box is called; names another kind; names none."""
_FAR = -1e4

TextReader = Callable[[Sequence[str]], Floats32]
"""(n, d) vectors of length 1 of texts, in the space of regions; see `Seer.texts`."""


@dataclass(frozen=True, slots=True)
class ReferringConfig:
    """The shape of the network, and when it says that something is there.

    words: of its vocabulary. vector_size: of texts and regions. states_size: of hidden states; 0 to read none.
    least_there: an expression is there from this probability on, chosen on validation photos.
    """

    words: int
    vector_size: int
    states_size: int = 0
    width: int = 128
    heads: int = 4
    layers: int = 2
    word_size: int = 64
    most_words: int = 24
    dropout: float = 0.2
    least_there: float = 0.5

    def __post_init__(self) -> None:
        sizes = (self.words, self.vector_size, self.width, self.heads, self.layers, self.word_size, self.most_words)
        if min(sizes) < 1 or self.states_size < 0 or self.width % (2 * self.heads):
            raise InvalidValue("ReferringConfig", f"needs sizes of at least 1 and whole heads, not {self}")
        if not (0 <= self.dropout < 1 and 0 <= self.least_there <= 1):
            raise InvalidValue("ReferringConfig", f"dropout and least_there are no probabilities: {self}")


class CandidateBatch(NamedTuple):
    """Boxes of B photos, filled up to n. there: (B, n) which are boxes. vectors: (B, n, d). name_vectors: (B, n, d).

    states: (B, n, s), nothing if the network reads none. standing: (B, n, STANDING). colours: (B, n, COLOURS);
    coloured: (B, 1) 1 where they are known.
    """

    there: Tensor
    vectors: Tensor
    name_vectors: Tensor
    states: Tensor
    standing: Tensor
    colours: Tensor
    coloured: Tensor


class ExpressionBatch(NamedTuple):
    """Texts. ids: (B, w) of words, filled up with PAD_ID, at least one each. vectors: (B, d). named: (B, n, 3) what the
    text names beside what each candidate is called."""

    ids: Tensor
    vectors: Tensor
    named: Tensor


class Referred(NamedTuple):
    """place: of the candidate that is most likely meant. there: how likely it is that what was said is there."""

    place: int
    there: float


class ReferringNet(nn.Module):
    """Scores of candidates, given an expression."""

    def __init__(self, config: ReferringConfig) -> None:
        super().__init__()
        self.config = config
        width, vectors = config.width, config.vector_size
        self.words = nn.Embedding(config.words + 3, config.word_size, padding_idx=PAD_ID)
        self.read = nn.GRU(config.word_size, width // 2, batch_first=True, bidirectional=True)
        self.sentence = nn.Linear(vectors, width)
        seen = 2 * vectors + config.states_size
        self.look = nn.Linear(seen, width)
        self.states_norm = nn.LayerNorm(config.states_size) if config.states_size else None
        self.stand = nn.Sequential(nn.Linear(STANDING + _NAMED + 2, width), nn.GELU(), nn.Linear(width, width))
        self.paint = nn.Sequential(nn.Linear(COLOURS + 1, width // 2), nn.GELU(), nn.Linear(width // 2, width))
        self.absent = nn.Parameter(torch.zeros(width))
        layer = nn.TransformerDecoderLayer(
            width, config.heads, 2 * width, config.dropout, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerDecoder(layer, config.layers, nn.LayerNorm(width))
        self.score = nn.Sequential(nn.Linear(3 * width, width), nn.GELU(), nn.Linear(width, 1))
        self.drop = nn.Dropout(config.dropout)
        nn.init.normal_(self.words.weight, std=0.3)
        nn.init.normal_(self.absent, std=0.02)

    def forward(self, boxes: CandidateBatch, said: ExpressionBatch) -> Tensor:
        """(B, 1 + n) logits: that it is not there, and of each candidate."""
        silent = said.ids == PAD_ID
        words = self._read(said.ids, silent)
        sentence = self.sentence(said.vectors)
        memory = torch.cat([sentence[:, None], words], dim=1)
        unsaid = torch.cat([silent.new_zeros(len(silent), 1), silent], dim=1)
        x = torch.cat([self.absent.expand(len(memory), 1, -1), self._boxes(boxes, said)], dim=1)
        empty = torch.cat([silent.new_zeros(len(silent), 1), ~boxes.there], dim=1)
        x = self.layers(x, memory, tgt_key_padding_mask=empty, memory_key_padding_mask=unsaid)
        text = sentence + words.masked_fill(silent[..., None], _FAR).amax(dim=1)
        text = text[:, None].expand_as(x)
        logits: Tensor = self.score(torch.cat([x, text, x * text], dim=-1))[..., 0]
        return logits.masked_fill(empty, _FAR)

    def _read(self, ids: Tensor, silent: Tensor) -> Tensor:
        """(B, w, width) states of words, in both directions; what texts are filled up with is never read."""
        lengths = (~silent).sum(dim=1)
        packed = pack_padded_sequence(self.drop(self.words(ids)), lengths, batch_first=True, enforce_sorted=False)
        words, _ = pad_packed_sequence(self.read(packed)[0], batch_first=True, total_length=ids.shape[1])
        return words

    def _boxes(self, boxes: CandidateBatch, said: ExpressionBatch) -> Tensor:
        """(B, n, width)"""
        seen = [boxes.vectors, boxes.name_vectors]
        if self.states_norm is not None:
            seen.append(self.states_norm(boxes.states))
        near = torch.stack([(part * said.vectors[:, None]).sum(dim=-1) for part in seen[:2]], dim=-1)
        # Of 384 numbers each is small: brought to the size of the others.
        scale = self.config.vector_size**0.5
        looks = torch.cat([scale * seen[0], scale * seen[1], *seen[2:]], dim=-1)
        known = boxes.coloured[:, None].expand(-1, looks.shape[1], -1)
        paint = self.paint(torch.cat([known * (4 * boxes.colours - 2), known], dim=-1))
        stand = self.stand(torch.cat([boxes.standing, said.named, 4 * near], dim=-1))
        x: Tensor = self.look(self.drop(looks)) + paint + stand
        return x


class Referrer:
    """A trained network with its vocabulary, ready to be asked."""

    def __init__(self, net: ReferringNet, vocabulary: Vocabulary) -> None:
        if net.config.words != len(vocabulary):
            raise InvalidValue("vocabulary", f"has {len(vocabulary)} words, but the network knows {net.config.words}")
        self.net, self.vocabulary = net.eval(), vocabulary

    @property
    def config(self) -> ReferringConfig:
        return self.net.config

    def check(self, vector_size: int) -> Referrer:
        """The same, if it reads vectors of this size."""
        reads = self.config.vector_size
        if reads != vector_size:
            raise InvalidValue("referring", f"reads vectors of {reads} numbers, but this seer's have {vector_size}")
        return self

    def ids(self, text: str) -> list[int]:
        """The words of an expression as the network reads them; InvalidValue if there are none."""
        words = plain_words(text)
        if not words:
            raise InvalidValue("text", "has no word")
        return list(self.vocabulary.encode(words).ids[: self.config.most_words])

    def understands(self, text: str) -> bool:
        """Whether it can be asked about an expression: it names a kind of COCO's, or has known words alone."""
        words = plain_words(text)
        known = self.vocabulary.unknown_id not in self.vocabulary.encode(words).ids
        return bool(words) and (known or bool(classes_named(text)))

    def refer(self, candidates: Candidates, text: str, reader: TextReader) -> Referred:
        """Which candidate an expression means, and how likely it is that there is such a thing."""
        with torch.inference_mode():
            logits = self.net(*self.batch(candidates, text, reader))[0]
        chances = logits.softmax(dim=0)
        return Referred(int(chances[1:].argmax()), float(1 - chances[0]))

    def is_there(self, referred: Referred) -> bool:
        return referred.there >= self.config.least_there

    def batch(self, candidates: Candidates, text: str, reader: TextReader) -> tuple[CandidateBatch, ExpressionBatch]:
        """One photo and one text, as the network reads them."""
        ids = torch.tensor([self.ids(text)])
        kinds = list(dict.fromkeys(name for name in candidates.names if name != WHOLE))
        vectors = reader([text, *kinds])
        named = np.zeros_like(candidates.vectors)
        for number, name in enumerate(candidates.names):
            if name != WHOLE:
                named[number] = vectors[1 + kinds.index(name)]
        boxes = one_photo(candidates, named, self.config.states_size)
        said = ExpressionBatch(
            ids, torch.from_numpy(vectors[:1]), torch.from_numpy(naming(text, candidates.names))[None]
        )
        return boxes, said

    def save_pretrained(self, folder: str | Path, *, int8: bool = True) -> None:
        """int8: in a byte a number, else in float32."""
        files = {VOCABULARY: self.vocabulary.to_json().encode()}
        save_part(folder, _KIND, asdict(self.config), self.net.state_dict(), files, int8=int8)

    @classmethod
    def from_pretrained(cls, source: str | Path) -> Referrer:
        part = load_part(source, _KIND)
        try:
            config = ReferringConfig(**part.config)
            vocabulary = Vocabulary.from_json(part.files[VOCABULARY].decode())
            return cls(built(lambda: ReferringNet(config), part), vocabulary)
        except (TypeError, KeyError, InvalidValue, UnicodeDecodeError) as error:
            raise InvalidFile(part.folder, f"does not hold what finds expressions: {error}") from error


def naming(text: str, names: Sequence[str]) -> Floats32:
    """(n, 3) whether a text names what each candidate is called, names another of COCO's kinds, or none."""
    said = classes_named(text)
    rows = [(name in said, bool(said) and name not in said, not said) for name in names]
    return np.array(rows, np.float32)


def one_photo(candidates: Candidates, name_vectors: Floats32, states_size: int) -> CandidateBatch:
    """A batch of one. name_vectors: (n, d), of what candidates are called. InvalidValue if states of another size are
    wanted than the photo has."""
    has = 0 if candidates.states is None else candidates.states.shape[1]
    if states_size not in (0, has):
        raise InvalidValue("candidates", f"have hidden states of {has} numbers, the network reads {states_size}")
    count = len(candidates)
    states = candidates.states if states_size and candidates.states is not None else np.zeros((count, 0), np.float32)
    colours = np.zeros((count, COLOURS), np.float32) if candidates.colours is None else candidates.colours
    stand = standing(candidates.boxes_xyxy, candidates.names, candidates.scores)
    return CandidateBatch(
        torch.ones(1, count, dtype=torch.bool),
        _row(candidates.vectors),
        _row(name_vectors),
        _row(states),
        _row(stand),
        _row(colours),
        torch.tensor([[float(candidates.colours is not None)]]),
    )


def _row(array: Floats32) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, np.float32))[None]


def referring_loss(logits: Tensor, overlaps: Tensor) -> Tensor:
    """Cross-entropy with the candidates that overlap the true box by IoU ≥ 0.5, the more the better.

    logits: (B, 1 + n). overlaps: (B, n) IoU with the true box; all 0 of an expression whose thing is not there.
    """
    fits = (overlaps >= 0.5) * overlaps**4
    total = fits.sum(dim=1, keepdim=True)
    truth = torch.cat([(total == 0).to(fits.dtype), fits / total.clamp(min=1e-9)], dim=1)
    return -(truth * functional.log_softmax(logits, dim=1)).sum(dim=1).mean()
