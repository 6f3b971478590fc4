"""An eye from its folder, ready to look: the frozen trunk, what it learnt, and a name for what it finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.assets import cache_folder, find
from saywhere.core import InvalidFile, InvalidValue
from saywhere.models.folder import WEIGHTS, built, load_part, save_part
from saywhere.provenance import sha256_of
from saywhere.vision.eye import Eye, EyeConfig, EyeEncoder, EyeNet, Seen, tuned_trunk
from saywhere.vision.focus import NAME as TRUNK
from saywhere.vision.focus import open_focus
from saywhere.vision.runtime import looking_precision, open_runtime
from saywhere.vision.things import Namer

SHIPPED = Path(__file__).parents[1] / "base" / "eye"
"""The eye of saywhere-base, whose card says what it learnt from and how good it is."""


_KIND = "eye"
_WORD_SHARPNESS = 10.0
"""How much the best patches count for a word beside the others."""


class EyeLearner(nn.Module):
    """An eye with what it measures by: names of classes and words as vectors, and how sharply cosines with them are
    read, for boxes, cells, words and captions.

    names, words: as texts; name_vectors, word_vectors: (classes, d) and (words, d) of length 1. word_bias: (words,),
    how often each word is said, as a logit. around: those of the words that mean surroundings, once it was saved.
    """

    name_vectors: Tensor
    word_vectors: Tensor

    def __init__(self, eye: EyeNet, names: Mapping[str, Tensor], words: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.eye = eye
        self.names, self.words = tuple(names), tuple(words)
        self.around: tuple[str, ...] = ()
        self.box_scale, self.dense_scale, self.word_scale, self.contrast_scale = (
            nn.Parameter(torch.tensor(float(np.log(start)))) for start in (20, 15, 10, 20)
        )
        self.dense_bias = nn.Parameter(torch.tensor(-6.0))
        self.word_bias = nn.Parameter(torch.zeros(len(words)))
        for name, some in (("name_vectors", names), ("word_vectors", words)):
            vectors = torch.stack(list(some.values())) if some else torch.zeros(0, eye.config.text_size)
            self.register_buffer(name, functional.normalize(vectors, dim=-1))

    def forward(self, trunk_states: Tensor) -> Seen:
        seen: Seen = self.eye(trunk_states)
        return seen

    def word_scores(self, patches: Tensor) -> Tensor:
        """(B, W) logits that people say each word of a photo. patches: (B, n, d)."""
        cosines = functional.normalize(patches, dim=-1) @ self.word_vectors.T
        best = torch.logsumexp(_WORD_SHARPNESS * cosines, dim=1) - float(np.log(cosines.shape[1]))
        scores: Tensor = self.word_scale.exp() * best / _WORD_SHARPNESS + self.word_bias
        return scores

    @torch.no_grad()
    def with_words(self, words: Mapping[str, Tensor], biases: Tensor) -> EyeLearner:
        """The same eye for other words: those it knows already are as likely as they were, the others as `biases`, (W,)
        logits, have it."""
        named = dict(zip(self.names, self.name_vectors, strict=True))
        other = EyeLearner(self.eye, named, words)
        for name in ("box_scale", "dense_scale", "word_scale", "contrast_scale", "dense_bias"):
            other.get_parameter(name).copy_(self.get_parameter(name))
        known = dict(zip(self.words, self.word_bias, strict=True))
        kept = [known.get(word, bias) for word, bias in zip(words, biases, strict=True)]
        other.word_bias.copy_(torch.stack(kept) if kept else biases)
        return other.train(self.training)

    def save_pretrained(self, folder: str | Path, *, half: bool = False, int8: bool = False) -> None:
        """Weights, shape, names and words into a folder. half, int8: see `save_part`; it loads as float32."""
        from saywhere.language.surroundings import kinds_by_word

        around = [word for word in self.words if word in kinds_by_word()]
        texts = {"names": list(self.names), "words": list(self.words), "around": around}
        save_part(folder, _KIND, self.eye.config.to_dict() | texts, self.state_dict(), half=half, int8=int8)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> EyeLearner:
        """From a folder, or from the hub ("owner/name"), at rest."""
        part = load_part(source, _KIND, revision)
        try:
            shape = {name: value for name, value in part.config.items() if name not in ("names", "words", "around")}
            config = EyeConfig(**shape)
            texts = [tuple(part.config[name]) for name in ("names", "words")]
            learner = built(lambda: cls(EyeNet(config), *(_unread(some, config.text_size) for some in texts)), part)
            learner.around = tuple(part.config.get("around", ()))
            if unknown := set(learner.around) - set(learner.words):
                raise InvalidValue("around", f"has {min(map(str, unknown))!r}, which is none of its words")
        except (TypeError, KeyError, InvalidValue) as error:
            raise InvalidFile(part.folder, f"is not an eye: {error}") from error
        return learner.eval()


def _unread(texts: Sequence[str], size: int) -> dict[str, Tensor]:
    """Vectors of texts that are yet to be read from the file."""
    return {text: torch.ones(size) for text in texts}


def open_eye(folder: str | Path = SHIPPED, kind: str = "", *, finds: bool = True) -> EyeEncoder:
    """kind: of runtime, see `saywhere.vision.runtime`. finds: see `EyeEncoder`. The trunk's weights are fetched if they
    are not there."""
    precision = looking_precision(kind)
    learner = EyeLearner.from_pretrained(folder)
    config = learner.eye.config
    digest = sha256_of(Path(folder) / WEIGHTS)
    key = f"eye {digest} {config} trunk {find(TRUNK).files[0].stored_sha256}"
    example = torch.zeros(1, config.input_px, config.input_px, 3, dtype=torch.uint8)

    def eye() -> Eye:
        return Eye(tuned_trunk(open_focus().network, learner.eye), learner.eye)

    run = open_runtime(eye, key, example, cache_folder() / "compiled", kind, precision)
    return EyeEncoder(run, config, digest, namer=namer_of(learner), precision=precision, finds=finds)


def namer_of(learner: EyeLearner) -> Namer:
    """Calls things by the names of classes that an eye learnt."""
    sharpness = float(learner.box_scale.detach().exp())
    around = [learner.words.index(word) for word in learner.around]
    return Namer(learner.names, learner.name_vectors.numpy(), sharpness, around=learner.word_vectors[around].numpy())
