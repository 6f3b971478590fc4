"""The other models here as `Attending`: what each of them attends to, in the form that the laboratory reads.

MitrAttending           regions to regions in the encoder; with captions, words to regions in the caption stream
UpDnVqaAttending        a question to regions: one row
UpDnCaptionAttending    the beginning of a caption to regions, and each of its words: one row each
PrefixAttending         the patch captioner's words to the image's vector, and to the words before them
view_attention          a vision encoder's class token to patches: one row (of Views, not of tagged regions)

None of them reads tags. Rows of places that ask nothing (an UpDn's regions, an encoder's patches) are 0. An image of
which nothing is present is all padding.

Shapes: b images, r regions, t words read, n places, d numbers in a state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import BEGIN_ID, PAD_ID, Vocabulary, plain_words
from saywhere.models.attended import Attended, TokenKind
from saywhere.models.common.batches import Packed, padded
from saywhere.models.common.modes import eval_mode
from saywhere.models.mitr.layers import as_keys, causal_mask
from saywhere.models.mitr.network import MITR, EncoderLayer
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.layers import DecoderBlock, as_vectors
from saywhere.models.tagged_regions import TaggedRegions
from saywhere.models.updown.captioner import UpDnCaptioner
from saywhere.models.updown.vqa import UpDnVqa
from saywhere.vision.transformer import outputs_of
from saywhere.vision.view import View


@dataclass(frozen=True, slots=True, eq=False)
class MitrAttending:
    """MITR. Places: the beginning of the text and its words, if there are captions; then the regions.

    A layer holds the encoder's rows of regions and, beside them, what the words of the caption stream's layer look at
    in the encoded image. Words look at each other by a second softmax of the same layer, which is not shown: together
    with it rows would sum to 2. States: of regions after the encoder, of words after their stream (before the fusion
    with a trace, on which nothing here depends): take the mean over one part, not over both.
    """

    model: MITR

    def attend(self, images: Sequence[TaggedRegions], captions: Sequence[str] | None = None) -> Attended:
        """captions: one for each image, read whole."""
        model = self.model
        words = _read(captions, len(images), model.vocabulary, str.split) if captions is not None else None
        seen = _Regions.of(images, model.config.region_size, model.device)
        encoders = [layer for layer in model.encoder if isinstance(layer, EncoderLayer)]
        asked = {
            f"{what}{number}": module
            for number, (encoder, stream) in enumerate(zip(encoders, model.word_stream, strict=True))
            for what, module in (
                ("query", encoder.attention.query),
                ("key", encoder.attention.key),
                ("word_query", stream.image_attention.query),
                ("word_key", stream.image_attention.key),
            )
        }
        heads, keys = model.config.heads, as_keys(seen.safe)
        with eval_mode(model), outputs_of(**asked) as kept:
            hidden = model.hidden(seen.features, seen.encoded_boxes(), seen.safe)
            if words is not None:
                words = words.to(model.device)
                memory, real = model.memorise(hidden, seen.safe), words != PAD_ID
                causal = causal_mask(words.shape[1], words.shape[1], words.device) & as_keys(real)
                spoken = model.word_stream(model.words(words), causal, memory.words, memory.mask)
            layers = []
            for i in range(len(encoders)):
                rows = _shares(kept[f"query{i}"], kept[f"key{i}"], heads, keys)
                if words is not None:
                    rows = torch.cat([_shares(kept[f"word_query{i}"], kept[f"word_key{i}"], heads, keys), rows], dim=2)
                layers.append(functional.pad(rows, (rows.shape[2] - rows.shape[3], 0)))
        if words is None:
            return _attended(layers, hidden, seen.parts, seen.index)
        return _attended(layers, torch.cat([spoken, hidden], dim=1), *_before(words, seen))


@dataclass(frozen=True, slots=True, eq=False)
class UpDnVqaAttending:
    """An UpDn network that answers one question about every image. Places: the question (special), then the regions.

    One layer, one head, and one row: the question's. States: what attention compares, of the question and of each
    region; `width` numbers.
    """

    model: UpDnVqa
    question: str

    def attend(self, images: Sequence[TaggedRegions]) -> Attended:
        """As the protocol says."""
        model = self.model
        seen = _Regions.of(images, model.config.region_size, model.device)
        ids = _known(model.vocabulary).encode(plain_words(self.question)[: model.config.max_words]).ids
        if not ids:
            raise InvalidValue("question", f"{self.question!r} has no word")
        asked = {"region": model.attend_region, "question": model.attend_question}
        questions = torch.tensor([ids], device=model.device).expand(len(images), -1)
        with eval_mode(model), outputs_of(**asked) as kept:
            rows = model(seen.features, seen.present, questions, boxes=seen.boxes).attention
        states = torch.cat([kept["question"][:, None], kept["region"]], dim=1)
        return _attended([_square(rows[:, None])], states, *_before(torch.full_like(questions[:, :1], BEGIN_ID), seen))


@dataclass(frozen=True, slots=True, eq=False)
class UpDnCaptionAttending:
    """An UpDn captioner. Places: the beginning of the text (special) and its words, then the regions.

    One layer, one head; a word's row is where the network looks once it has read the word. States: what attention
    compares, of the network's mind at each word and of each region; `attention` numbers.
    """

    model: UpDnCaptioner

    def attend(self, images: Sequence[TaggedRegions], captions: Sequence[str] | None = None) -> Attended:
        """captions: one for each image; none: only the beginning, so that there is one row."""
        model = self.model
        seen = _Regions.of(images, model.config.region_size, model.device)
        if captions is None:
            words = torch.full((len(images), 1), BEGIN_ID)
        else:
            words = _read(captions, len(images), model.vocabulary, plain_words)
        words = words.to(model.device)
        rows, compared = [], []
        with eval_mode(model):
            encoded, state = model.look(seen.features, seen.present, boxes=seen.boxes), model.begin(len(images))
            for place in range(words.shape[1]):
                state, shared = model.step(encoded, state, words[:, place])
                rows.append(shared)
                compared.append(model.compare_state(state.attention[0]))
        states = torch.cat([torch.stack(compared, dim=1), encoded.compared], dim=1)
        return _attended([_square(torch.stack(rows, dim=1))], states, *_before(words, seen))


@dataclass(frozen=True, slots=True, eq=False)
class PrefixAttending:
    """The patch captioner's decoder. Places: the image's vector (parts of the region kind, with index −1: it is the
    image as a whole), the beginning of the text (special), its words. Every place sees itself and those before it.

    vector_of: the vector that is put into words, of d numbers, from an image; by default the mean of the features of
    the regions that are present, as a region's caption reads the mean of its patches. States: after the last norm.
    """

    decoder: PrefixDecoder
    vector_of: Callable[[TaggedRegions], ArrayLike] | None = None

    def attend(self, images: Sequence[TaggedRegions], captions: Sequence[str] | None = None) -> Attended:
        """captions: one for each image; none: only the beginning."""
        decoder = self.decoder
        if decoder.config.extra_size:
            raise InvalidValue("decoder", "reads a second vector, which tagged regions do not have")
        if not images:
            raise InvalidValue("images", "there is none")
        texts = [""] * len(images) if captions is None else captions
        words = _read(texts, len(images), decoder.vocabulary, str.split).to(decoder.device)
        here = torch.tensor([bool(image.region_present.any()) for image in images], device=decoder.device)
        vectors = as_vectors(np.stack([self._vector(image) for image in images]), "vectors", decoder.size)
        blocks = {
            f"block{i}": block.query_key_value
            for i, block in enumerate(decoder.blocks)
            if isinstance(block, DecoderBlock)
        }
        with eval_mode(decoder), outputs_of(norm=decoder.norm, **blocks) as kept:
            decoder.read(vectors.to(decoder.device), words)
        before = decoder.config.before_words
        real = functional.pad(words != PAD_ID, (before, 0), value=True)
        packed = Packed.of(real)
        n = real.shape[1]
        causal = causal_mask(n, n, decoder.device)
        layers = []
        for i in range(len(blocks)):
            query, key, _ = packed.unpack(kept[f"block{i}"]).chunk(3, dim=-1)
            layers.append(_shares(query, key, decoder.config.heads, causal & as_keys(real)))
        parts = functional.pad(_word_parts(words), (before, 0), value=int(TokenKind.REGION)) * here[:, None]
        return _attended(layers, packed.unpack(kept["norm"]), parts, torch.full_like(parts, -1))

    def _vector(self, image: TaggedRegions) -> NDArray[np.float32]:
        size = self.decoder.size
        if not image.region_present.any():
            return np.zeros(size, np.float32)
        made = image.features[image.region_present].mean(axis=0) if self.vector_of is None else self.vector_of(image)
        vector = np.asarray(made, np.float32)
        if vector.shape != (size,):
            raise InvalidValue("vector of an image", f"has {vector.size} numbers for a decoder that reads {size}")
        return vector


def view_attention(views: Sequence[View]) -> Attended:
    """What an encoder's class token attends to among the patches, in its last block and over heads, as Views keep it.

    Places: the class token (special), then the patches row by row, as regions. Views of one grid. States: `whole` and
    the patches. For probing alone no attention is needed: `view.whole` is a state already.
    """
    if not views:
        raise InvalidValue("views", "there is none")
    if len({view.patches.shape for view in views}) > 1:
        raise InvalidValue("views", "have grids or sizes that differ", "give those of one encoder")
    without = [i for i, view in enumerate(views) if view.attention is None]
    if without:
        raise InvalidValue("views", f"number {without[0]} has no attention", "use an encoder that gives it")
    rows = torch.stack([torch.from_numpy(np.ravel(np.array(view.attention))) for view in views])
    patches = torch.stack([torch.from_numpy(np.array(view.patches)).flatten(0, 1) for view in views])
    whole = torch.stack([torch.from_numpy(np.array(view.whole)) for view in views])
    b, r = rows.shape
    parts = torch.full((b, 1 + r), int(TokenKind.REGION))
    parts[:, 0] = int(TokenKind.SPECIAL)
    index = torch.arange(-1, r).expand(b, -1)
    return _attended([_square(rows[:, None])], torch.cat([whole[:, None], patches], dim=1), parts, index)


@dataclass(frozen=True, slots=True, eq=False)
class _Regions:
    """features: (b, r, f). boxes: (b, r, 4). present: (b, r); at least one place, which may be padding."""

    features: Tensor
    boxes: Tensor
    present: Tensor

    @classmethod
    def of(cls, images: Sequence[TaggedRegions], size: int, device: torch.device) -> _Regions:
        if not images:
            raise InvalidValue("images", "there is none")
        for number, image in enumerate(images):
            if image.region_size != size:
                reason = f"has features of size {image.region_size}, but the network reads {size}"
                raise InvalidValue(f"image {number}", reason)
        parts = [
            padded([image.features for image in images]),
            padded([image.boxes_xyxy for image in images]),
            padded([image.region_present for image in images]),
        ]
        if not parts[2].shape[1]:
            parts = [functional.pad(part, (0, 0) * (part.ndim - 2) + (0, 1)) for part in parts]
        return cls(*(part.to(device) for part in parts))

    @property
    def safe(self) -> Tensor:
        """(b, r) what is present; of an image with nothing the first place, so that no softmax is over nothing."""
        first = torch.arange(self.present.shape[1], device=self.present.device) == 0
        return self.present | (first & ~self.present.any(dim=1, keepdim=True))

    @property
    def parts(self) -> Tensor:
        """(b, r)."""
        return self.present * int(TokenKind.REGION)

    @property
    def index(self) -> Tensor:
        """(b, r)."""
        numbers = torch.arange(self.present.shape[1], device=self.present.device)
        return torch.where(self.present, numbers, -1)

    def encoded_boxes(self) -> Tensor:
        """(b, r, 5) with their area."""
        sides = self.boxes[..., 2:] - self.boxes[..., :2]
        return torch.cat([self.boxes, sides.prod(dim=-1, keepdim=True)], dim=-1)


def _known(vocabulary: Vocabulary | None) -> Vocabulary:
    if vocabulary is None:
        raise InvalidValue("model", "does not know what its word ids mean", "attach a vocabulary")
    return vocabulary


def _read(texts: Sequence[str], count: int, vocabulary: Vocabulary | None, cut: Callable[[str], list[str]]) -> Tensor:
    """(b, t) ids, BEGIN_ID first and PAD_ID after."""
    if len(texts) != count:
        raise InvalidValue("captions", f"there are {len(texts)} for {count} images")
    known = _known(vocabulary)
    return padded([np.array([BEGIN_ID, *known.encode(cut(text)).ids], np.int64) for text in texts])


def _word_parts(words: Tensor) -> Tensor:
    """(b, t) what stands at each place of (b, t) ids."""
    parts = torch.where(words == BEGIN_ID, int(TokenKind.SPECIAL), int(TokenKind.CAPTION))
    return parts.masked_fill(words == PAD_ID, int(TokenKind.PAD))


def _before(words: Tensor, seen: _Regions) -> tuple[Tensor, Tensor]:
    """Parts and index, (b, t + r) each, of texts that stand before regions; all padding where no region is present."""
    parts = torch.cat([_word_parts(words), seen.parts], dim=1) * seen.present.any(dim=1, keepdim=True)
    return parts, functional.pad(seen.index, (words.shape[1], 0), value=-1)


def _shares(query: Tensor, key: Tensor, heads: int, may: Tensor) -> Tensor:
    """(b, heads, queries, keys) attention from projected queries and keys (b, …, width). may: True where one looks."""
    asks, asked = (part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in (query, key))
    scores: Tensor = asks @ asked.transpose(2, 3) / asks.shape[-1] ** 0.5
    return scores.masked_fill(~may, -torch.inf).softmax(dim=-1)


def _square(rows: Tensor) -> Tensor:
    """(b, 1, n, n) from rows (b, t, r) of the first t places over the last r, n = t + r; the others ask nothing."""
    _, t, r = rows.shape
    return functional.pad(rows, (t, 0, 0, r))[:, None]


def _attended(layers: Sequence[Tensor], states: Tensor, parts: Tensor, index: Tensor) -> Attended:
    """With padding taken out of everything. layers: (b, heads, n, n) each."""
    here = parts != TokenKind.PAD
    both = (here[:, :, None] & here[:, None, :])[:, None]
    return Attended(
        tuple(torch.where(both, layer, 0.0).cpu() for layer in layers),
        torch.where(here[:, :, None], states, 0.0).cpu(),
        parts.cpu(),
        index.masked_fill(~here, -1).cpu(),
    )
