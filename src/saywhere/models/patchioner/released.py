"""The decoder that the authors of Patch-ioner published (DeCap's): a GPT-2 that reads CLIP's tokens after one prefix.

    vector → Linear → GPT-2 → pieces of CLIP's vocabulary → text

Their program runs 30 steps without a cache whatever is said, and scores what comes after the end; here a text ends
where it ends, and its score is the mean log-probability up to there. The words are the same. The shape is read off the
tensors: the pickled config that comes with the weights is not needed, and never opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from saywhere.assets.checkpoint import TOKENIZER, find_checkpoint, read_tensors
from saywhere.assets.conversion import to_safetensors
from saywhere.core.errors import InvalidFile, InvalidValue, require
from saywhere.models.common.modes import eval_mode
from saywhere.models.folder import built, load_part, save_part
from saywhere.models.patchioner.layers import as_vectors
from saywhere.models.patchioner.seer import RELEASED
from saywhere.models.search import GREEDY, GenerationConfig, Hypothesis, Rules, Steps, Written, search, uniform_draws

HEADS = 4
"""Of the published decoder; its tensors do not tell."""
END = 49407
"""CLIP's end of a text."""
_MOST_WORDS = 30
_SHAPE = ("words", "places", "width", "layers", "heads", "vector_size")
_NETWORK, _PREFIX = "decoder.", "clip_project.model.0."
# Buffers and copies that a checkpoint may hold beside what is learnt.
_NOT_LEARNT = (".attn.bias", ".attn.masked_bias", "lm_head.weight")


class ReleasedDecoder(nn.Module):
    """A `Writer` of the published form. tokenizer: CLIP's, in the form of the tokenizers library."""

    def __init__(self, shape: Mapping[str, int], tokenizer: Any) -> None:
        super().__init__()
        transformers = require("transformers", needed_for="the published decoder", extra="models")
        _check_shape(shape)
        self.shape, self.tokenizer = dict(shape), tokenizer
        config = transformers.GPT2Config(
            vocab_size=shape["words"],
            n_positions=shape["places"],
            n_embd=shape["width"],
            n_layer=shape["layers"],
            n_head=shape["heads"],
            bos_token_id=END,
            eos_token_id=END,
        )
        self.decoder = transformers.GPT2LMHeadModel(config)
        self.prefix = nn.Linear(shape["vector_size"], shape["width"])
        self.end = min(END, shape["words"] - 1)

    @property
    def size(self) -> int:
        """d, numbers in the vectors it reads."""
        return self.prefix.in_features

    @property
    def device(self) -> torch.device:
        return self.prefix.weight.device

    def forward(self, vectors: Tensor, tokens: Tensor) -> Tensor:
        """(m, 1 + t, V) logits after the prefix and after each of (m, t) tokens. vectors: (m, d)."""
        embedded = torch.cat([self.prefix(vectors)[:, None], self.decoder.get_input_embeddings()(tokens)], dim=1)
        logits: Tensor = self.decoder(inputs_embeds=embedded).logits
        return logits

    def write(
        self, vectors: ArrayLike, how: GenerationConfig = GREEDY, prompts: Sequence[str] | None = None
    ) -> list[Written]:
        """A text for each of (m, d) vectors. It learnt no prompts."""
        if prompts is not None and any(prompts):
            raise InvalidValue("prompts", "the published decoder learnt none")
        rows = as_vectors(vectors, "vectors", self.size).to(self.device)
        if not len(rows):
            return []
        most = min(how.max_words or _MOST_WORDS, self.shape["places"] - 1)
        rules = Rules(how, most, (self.end,))
        with eval_mode(self):
            draws = (uniform_draws([b""] * len(rows), how.seed, most),) if how.method == "nucleus" else ()
            return [self._written(one) for one in search(self.steps(rows), rules, *draws)]

    def steps(self, vectors: Tensor) -> Steps:
        """This decoder after (m, d) vectors."""
        return _ReleasedSteps(self, vectors)

    def text(self, tokens: Sequence[int]) -> str:
        """What tokens say, up to the end."""
        said = list(tokens)
        ended = said[: said.index(self.end)] if self.end in said else said
        return str(self.tokenizer.decode(ended, skip_special_tokens=True)).strip()

    def _written(self, said: Hypothesis) -> Written:
        return Written(self.text(said.tokens), said.score, said.logprobs, said.ended)

    def save_pretrained(self, folder: str | Path, *, half: bool = False) -> None:
        """Weights, shape and tokenizer into a folder."""
        files = {TOKENIZER: self.tokenizer.to_str().encode()}
        # One table reads and says words; it is kept once.
        state = {name: value for name, value in self.state_dict().items() if not name.endswith(_NOT_LEARNT)}
        save_part(folder, RELEASED, self.shape, state, files, half=half)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> ReleasedDecoder:
        """From a folder that `save_pretrained` wrote, or from the hub."""
        part = load_part(source, RELEASED, revision)
        try:
            shape = {name: int(value) for name, value in part.config.items()}
            tokenizer = _tokenizer(part.files[TOKENIZER])
            part.stored[f"{_NETWORK}lm_head.weight"] = part.stored[f"{_NETWORK}transformer.wte.weight"]
            model = built(lambda: cls(shape, tokenizer), part)
        except (InvalidValue, KeyError, TypeError, ValueError) as error:
            raise InvalidFile(part.folder, f"is not a published decoder: {error}") from error
        return model.eval()

    @classmethod
    def from_released(cls, state: Mapping[str, Tensor], tokenizer: Any, heads: int = HEADS) -> ReleasedDecoder:
        """From the tensors of the authors' checkpoint."""
        learnt = {name: value.float() for name, value in state.items() if not name.endswith(_NOT_LEARNT)}
        try:
            words, width = learnt[f"{_NETWORK}transformer.wte.weight"].shape
            places = len(learnt[f"{_NETWORK}transformer.wpe.weight"])
            vector_size = learnt[f"{_PREFIX}weight"].shape[1]
        except KeyError as error:
            raise InvalidValue("published decoder", f"lacks {error}") from error
        layers = len({name.split(".")[3] for name in learnt if name.startswith(f"{_NETWORK}transformer.h.")})
        shape = {"words": words, "places": places, "width": width, "layers": layers, "heads": heads}
        model = cls(shape | {"vector_size": vector_size}, tokenizer)
        ours = {name.replace(_PREFIX, "prefix."): value for name, value in learnt.items()}
        ours[f"{_NETWORK}lm_head.weight"] = ours[f"{_NETWORK}transformer.wte.weight"]
        missing, unknown = model.load_state_dict(ours, strict=False)
        if missing or unknown:
            raise InvalidValue("published decoder", f"lacks {missing[:3]}, and holds {unknown[:3]} beside its own")
        return model.eval()


def _check_shape(shape: Mapping[str, int]) -> None:
    for name in _SHAPE:
        if name not in shape:
            raise InvalidValue("published decoder", f"does not say its {name}")
        if shape[name] < 1:
            raise InvalidValue("published decoder", f"{name} is {shape[name]}, not a positive number")
    if shape["width"] % shape["heads"]:
        raise InvalidValue("published decoder", f"width {shape['width']} is not for {shape['heads']} heads")


def read_released(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a published file: safetensors, or .pt and .pth of plain tensors (`weights_only`)."""
    file = Path(path)
    if file.suffix == ".safetensors":
        return read_tensors(file)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidFile(file, f"cannot be opened: {error.strerror or error}") from error
    from safetensors.torch import load

    return load(to_safetensors(content, file.name))


def open_clip_tokenizer(source: str | Path) -> Any:
    """The tokenizer of a CLIP checkpoint in a folder or on the hub, which decodes as well."""
    path = find_checkpoint(source).folder / TOKENIZER
    try:
        return _tokenizer(path.read_bytes())
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error


def _tokenizer(content: bytes) -> Any:
    tokenizers = require("tokenizers", needed_for="the published decoder", extra="models")
    try:
        return tokenizers.Tokenizer.from_str(content.decode("utf-8"))
    except Exception as error:  # the library raises nothing more special
        raise InvalidValue("tokenizer", f"cannot be read: {error}") from error


class _ReleasedSteps(Steps):
    """One token at a time, with the keys and values of earlier places kept."""

    def __init__(self, model: ReleasedDecoder, vectors: Tensor) -> None:
        self.model = model
        self._first = model.prefix(vectors)[:, None]
        self._cache: Any = None

    def start(self) -> Tensor:
        return self._scores(self._first)

    def advance(self, tokens: Tensor) -> Tensor:
        return self._scores(self.model.decoder.get_input_embeddings()(tokens)[:, None])

    def reorder(self, rows: Tensor) -> None:
        self._cache.batch_select_indices(rows)

    def _scores(self, embedded: Tensor) -> Tensor:
        out = self.model.decoder(inputs_embeds=embedded, past_key_values=self._cache, use_cache=True)
        self._cache = out.past_key_values
        logits: Tensor = out.logits[:, -1]
        return logits
