"""The text side of CLIP from a transformers checkpoint, and Talk2DINO's way from there into DINOv2's space."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saywhere.assets.checkpoint import TOKENIZER, find_checkpoint, read_tensors
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Progress
from saywhere.language.embed import Vectors, embed_by_length, open_tokenizer
from saywhere.provenance import sha256_of

# The released projections call the second layer by either name.
_SECOND_LAYERS = ("linear_layer2", "hidden_layers.0")


def open_clip_text(source: str) -> ClipText:
    """The text side of a CLIP: source is a folder, or the name of a checkpoint on the hub."""
    checkpoint = find_checkpoint(source)
    tokenizer = checkpoint.folder / TOKENIZER
    if not tokenizer.is_file():
        raise InvalidFile(checkpoint.folder, f"holds no {TOKENIZER}")
    network = checkpoint.load("CLIPTextModelWithProjection", ("clip", "clip_text_model"))
    return ClipText(network, tokenizer, f"clip:{source}", checkpoint.sha256(TOKENIZER))


def open_talk2dino_text(source: str) -> Talk2DinoText:
    """source: "CHECKPOINT+PROJECTION.safetensors", a CLIP as for `open_clip_text` and the projection's file."""
    checkpoint, plus, file = source.partition("+")
    if not plus or not checkpoint or not file:
        raise InvalidValue(
            "text encoder", f"'talk2dino:{source}' is not of two parts", "talk2dino:CHECKPOINT+PROJECTION.safetensors"
        )
    projection = load_talk2dino_projection(file)
    return Talk2DinoText(open_clip_text(checkpoint), projection, sha256_of(Path(file)))


class ClipText:
    """CLIP's text tower: what it makes of the end token, projected into the space it shares with photos.

    tokenizer: the path of tokenizer.json. sha256: of config, tokenizer and weights, for the record.
    """

    def __init__(self, network: Any, tokenizer: Path, name: str, sha256: str) -> None:
        self.network: Any = network.float().eval().requires_grad_(False)
        self.name, self.sha256 = name, sha256
        self._tokenizer = open_tokenizer(tokenizer, int(network.config.max_position_embeddings))

    @property
    def size(self) -> int:
        return int(self.network.text_projection.out_features)

    @property
    def fingerprint(self) -> dict[str, str | int]:
        return {"text_encoder": "clip", "checkpoint_sha256": self.sha256}

    def embed(self, texts: Sequence[str], *, batch: int = 64, progress: Progress | None = None) -> Vectors:
        """(n, size) rows of length 1, in the order of the texts."""
        return embed_by_length(texts, self._tokenizer, self.features, self.size, batch, progress)

    def features(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(B, T) token ids and their mask → (B, size), of any length."""
        found: Tensor = self.network(input_ids=ids, attention_mask=mask).text_embeds
        return found

    @property
    def tokenizer(self) -> Any:
        return self._tokenizer


class Talk2DinoText:
    """CLIP's text vectors, as they are before they are made of length 1, taken on by Linear, tanh, Linear."""

    def __init__(self, clip: ClipText, projection: Talk2DinoProjection, projection_sha256: str) -> None:
        if projection.into != clip.size:
            raise InvalidValue("projection", f"takes {projection.into} numbers, but {clip.name} gives {clip.size}")
        self.clip, self.projection = clip, projection.eval().requires_grad_(False)
        self.projection_sha256 = projection_sha256

    @property
    def name(self) -> str:
        return f"talk2dino:{self.clip.name.removeprefix('clip:')}"

    @property
    def size(self) -> int:
        return self.projection.out

    @property
    def fingerprint(self) -> dict[str, str | int]:
        return self.clip.fingerprint | {"text_encoder": "talk2dino", "projection_sha256": self.projection_sha256}

    def embed(self, texts: Sequence[str], *, batch: int = 64, progress: Progress | None = None) -> Vectors:
        """(n, size) rows of length 1, in the order of the texts."""
        return embed_by_length(texts, self.clip.tokenizer, self._projected, self.size, batch, progress)

    def _projected(self, ids: Tensor, mask: Tensor) -> Tensor:
        projected: Tensor = self.projection(self.clip.features(ids, mask).float())
        return projected


class Talk2DinoProjection(nn.Module):
    """Linear, tanh, Linear: from CLIP's text space (512 for B/16) into the space of DINOv2's patches."""

    def __init__(self, into: int, hidden: int, out: int) -> None:
        super().__init__()
        self.into, self.out = into, out
        self.first = nn.Linear(into, hidden)
        self.second = nn.Linear(hidden, out)

    def forward(self, vectors: Tensor) -> Tensor:
        """(..., into) → (..., out)."""
        projected: Tensor = self.second(torch.tanh(self.first(vectors)))
        return projected


def _published(path: Path) -> dict[str, Tensor]:
    if path.suffix not in (".pth", ".pt"):
        return read_tensors(path)
    from safetensors.torch import load

    from saywhere.assets.conversion import to_safetensors

    try:
        return load(to_safetensors(path.read_bytes(), path.name))
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error


def load_talk2dino_projection(path: str | Path) -> Talk2DinoProjection:
    """A projection under the released names: linear_layer, and linear_layer2 or hidden_layers.0.

    path: safetensors, or the published .pth of plain tensors, which is read with `weights_only`.
    """
    tensors = _published(Path(path))
    second = next((name for name in _SECOND_LAYERS if f"{name}.weight" in tensors), _SECOND_LAYERS[0])
    names = {
        f"{ours}.{kind}": f"{theirs}.{kind}"
        for ours, theirs in (("first", "linear_layer"), ("second", second))
        for kind in ("weight", "bias")
    }
    if set(tensors) != set(names.values()):
        raise InvalidFile(path, f"holds {', '.join(sorted(tensors))}", f"a projection is {', '.join(names.values())}")
    found = {ours: tensors[theirs].float() for ours, theirs in names.items()}
    if any(found[f"{layer}.weight"].ndim != 2 for layer in ("first", "second")):
        raise InvalidFile(path, "holds a weight that is not a matrix")
    hidden, into = found["first.weight"].shape
    projection = Talk2DinoProjection(into, hidden, found["second.weight"].shape[0])
    try:
        projection.load_state_dict(found)
    except RuntimeError as error:
        raise InvalidFile(path, f"its two layers do not fit each other: {error}") from error
    return projection
