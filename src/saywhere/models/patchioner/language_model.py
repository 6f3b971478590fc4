"""LanguageModelWriter: any causal language model of transformers (GPT-2, Qwen3 …) puts vectors into words.

It reads: padding (masked), the vector as k places, a prompt if there is one. Texts with prompts of different lengths
are padded on the left, so that all begin at the same place; what is masked is never looked at and takes no position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidFile, InvalidValue, require
from saywhere.models.folder import fit, load_part, save_part
from saywhere.models.patchioner.decode import GREEDY, Rules, Said, Writing, Written, draws, search
from saywhere.models.patchioner.decoder import resting
from saywhere.models.patchioner.layers import as_vectors, unit

_KIND = "patchioner-language-model"
_MODEL_FOLDER = "language-model"
_ROWS = 64


class LanguageModelWriter(nn.Module):
    """A language model with a linear prefix.

    network: an `AutoModelForCausalLM`. tokenizer: its tokenizer. vector_size: d. prefix: places that a vector becomes.
    max_words: tokens of the longest text. frozen: only the prefix is learnt.
    """

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        vector_size: int,
        prefix: int = 10,
        max_words: int = 40,
        *,
        frozen: bool = True,
    ) -> None:
        super().__init__()
        if min(vector_size, prefix, max_words) < 1:
            raise InvalidValue("vector_size, prefix, max_words", f"are {vector_size}, {prefix}, {max_words}")
        self.network, self.tokenizer, self.max_words = network, tokenizer, max_words
        self.places, self.frozen = prefix, frozen
        self._width = int(network.get_input_embeddings().embedding_dim)
        self.prefix = nn.Linear(vector_size, prefix * self._width)
        self.ends = _ends(network, tokenizer)
        self._silent = tuple(sorted(set(tokenizer.all_special_ids) - set(self.ends)))
        if frozen:
            network.requires_grad_(False)

    @classmethod
    def open(cls, source: str | Path, vector_size: int, **settings: Any) -> LanguageModelWriter:
        """A language model from a folder or the hub, with a new prefix to be trained."""
        transformers = require("transformers", needed_for="writing with a language model", extra="models")
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(source)
            network = transformers.AutoModelForCausalLM.from_pretrained(source, use_safetensors=True)
        except (OSError, ValueError) as error:
            raise InvalidFile(source, f"is no language model that can be loaded: {error}") from error
        return cls(network.eval(), tokenizer, vector_size, **settings)

    @property
    def size(self) -> int:
        """d, numbers in the vectors it reads."""
        return self.prefix.in_features

    @property
    def device(self) -> torch.device:
        return self.prefix.weight.device

    def write(self, vectors: ArrayLike, how: Writing = GREEDY, prompts: Sequence[str] | None = None) -> list[Written]:
        """A text for each of (m, d) vectors: the same whether it is written alone or among others."""
        rows = as_vectors(vectors, "vectors", self.size)
        begins = self._tokens(prompts, len(rows), "prompts")
        most = how.most_words(self.max_words)
        at_once = max(1, _ROWS // (how.beams if how.method == "beam" else 1))
        texts: list[Written] = []
        with resting(self):
            for first in range(0, len(rows), at_once):
                part = slice(first, first + at_once)
                texts += map(self._written, self._search(rows[part], begins[part], how, most))
        return texts

    def loss(
        self,
        vectors: Tensor,
        texts: Sequence[str],
        prompts: Sequence[str] | None = None,
        smoothing: float = 0.0,
    ) -> Tensor:
        """The mean cross entropy of the tokens and ends of all texts. Prompts are read, not learnt to say."""
        begins, said = self._tokens(prompts, len(vectors), "prompts"), self._tokens(texts, len(vectors), "texts")
        targets = [[*ids[: self.max_words], self.ends[0]] for ids in said]
        rows = [begin + target[:-1] for begin, target in zip(begins, targets, strict=True)]
        embedded, mask, positions = self._read(vectors, rows)
        scores = self.network(inputs_embeds=embedded, attention_mask=mask, position_ids=positions, use_cache=False)
        # Padding is on the left, so the places that say the text are the last ones of each row.
        spoken = [scores.logits[i, -len(target) :] for i, target in enumerate(targets)]
        flat = torch.tensor([token for target in targets for token in target], device=embedded.device)
        return functional.cross_entropy(torch.cat(spoken).float(), flat, label_smoothing=smoothing)

    def save_pretrained(self, folder: str | Path) -> None:
        """The prefix into a folder, and the language model with its tokenizer into a folder inside it."""
        self.network.save_pretrained(Path(folder) / _MODEL_FOLDER)
        self.tokenizer.save_pretrained(Path(folder) / _MODEL_FOLDER)
        config = {"vector_size": self.size, "prefix": self.places, "max_words": self.max_words, "frozen": self.frozen}
        save_part(folder, _KIND, config, self.prefix.state_dict())

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> LanguageModelWriter:
        """What `save_pretrained` wrote, at rest."""
        part = load_part(folder, _KIND)
        try:
            model = cls.open(part.folder / _MODEL_FOLDER, **part.config)
        except (InvalidValue, TypeError) as error:
            raise InvalidFile(part.folder, f"does not describe a writer: {error}") from error
        fit(model.prefix, part)
        return model.eval()

    def _read(self, vectors: Tensor, tokens: Sequence[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
        """What the network reads, each row padded on the left: embeddings (m, t, width), mask and positions (m, t)."""
        scaled = unit(vectors.to(self.device)) * math.sqrt(self.size)
        prefixes = self.prefix(scaled).view(len(vectors), self.places, self._width)
        table = self.network.get_input_embeddings()
        longest = max(map(len, tokens))
        embedded = prefixes.new_zeros(len(vectors), longest + self.places, self._width, dtype=table.weight.dtype)
        mask = torch.zeros(embedded.shape[:2], dtype=torch.long, device=self.device)
        for i, ids in enumerate(tokens):
            read = prefixes[i].to(table.weight.dtype)
            if ids:
                read = torch.cat([read, table(torch.tensor(ids, device=self.device))])
            embedded[i, -len(read) :] = read
            mask[i, -len(read) :] = 1
        return embedded, mask, (mask.cumsum(dim=1) - 1).clamp_min(0)

    def _search(self, vectors: Tensor, begins: list[list[int]], how: Writing, most: int) -> list[Said]:
        steps = _LanguageModelSteps(self.network, *self._read(vectors, begins))
        rules = Rules(how, most, self.ends, self._silent)
        if how.method != "nucleus":
            return search(steps, rules)
        # Chances do not depend on the vector: among others it is rounded otherwise, and would then get another text.
        return search(steps, rules, draws([repr(begin).encode() for begin in begins], how.seed, most))

    def _tokens(self, texts: Sequence[str] | None, count: int, what: str) -> list[list[int]]:
        if texts is None:
            return [[] for _ in range(count)]
        if len(texts) != count:
            raise InvalidValue(what, f"there are {len(texts)} for {count} vectors")
        return [list(self.tokenizer.encode(text, add_special_tokens=False)) if text else [] for text in texts]

    def _written(self, said: Said) -> Written:
        text = str(self.tokenizer.decode(list(said.tokens), skip_special_tokens=True))
        return Written(" ".join(text.split()), said.score, said.logprobs, said.ended)


class _LanguageModelSteps:
    """A language model, one token at a time, with transformers' own cache."""

    def __init__(self, network: Any, embedded: Tensor, mask: Tensor, positions: Tensor) -> None:
        self.network, self._embedded, self._positions = network, embedded, positions
        self.mask, self.place = mask, positions[:, -1:]
        self._cache: Any = None

    def start(self) -> Tensor:
        return self._scores(inputs_embeds=self._embedded, position_ids=self._positions)

    def advance(self, tokens: Tensor) -> Tensor:
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(tokens), 1)], dim=1)
        self.place = self.place + 1
        return self._scores(input_ids=tokens[:, None], position_ids=self.place)

    def reorder(self, rows: Tensor) -> None:
        self.mask, self.place = self.mask[rows], self.place[rows]
        self._cache.reorder_cache(rows)

    def _scores(self, **read: Tensor) -> Tensor:
        out = self.network(**read, attention_mask=self.mask, past_key_values=self._cache, use_cache=True)
        self._cache = out.past_key_values
        scores: Tensor = out.logits[:, -1]
        return scores


def _ends(network: Any, tokenizer: Any) -> tuple[int, ...]:
    """The tokens that end a text; the tokenizer's own comes first, since that one is learnt."""
    own = getattr(tokenizer, "eos_token_id", None)
    given = network.generation_config.eos_token_id if network.generation_config is not None else None
    also = given if isinstance(given, list) else [] if given is None else [given]
    ends = tuple(dict.fromkeys([*([] if own is None else [own]), *also]))
    if not ends:
        raise InvalidValue("language model", "has no token that ends a text", "set tokenizer.eos_token")
    return ends
