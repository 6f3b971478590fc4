"""The paper's full system out of the authors' published parts, as a folder that `saywhere.load` opens.

    DINOv2 with registers → patches → Σ w v → memory of captions → their decoder
    captions → CLIP → Talk2DINO's projection → the same space

Nothing of it is in the package: the parts are files that somebody has, and checkpoints in folders or on the hub.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from saywhere.atomic import write_atomic
from saywhere.build.memory import collect, embedded
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Progress
from saywhere.formats.files import read_bytes
from saywhere.language.clip_text import load_talk2dino_projection, open_talk2dino_text
from saywhere.language.embed import TextEncoder
from saywhere.models.h5_file import H5File
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.released import ReleasedDecoder, open_clip_tokenizer, read_released
from saywhere.models.patchioner.seer import save_config

PROJECTION, MEMORY, WRITER = "projection.safetensors", "memory.safetensors", "writer"
_EMBEDDINGS, _TEXTS = "-embeddings", "-text"
_LARGEST = "bytes of an index"
"""The limit of `saywhere.limits` for features of a memory in HDF5: of half a million captions they take 2 GB."""


@dataclass(frozen=True, slots=True)
class PublishedSystem:
    """Patch-ioner's best: the names are what the paper used. dino, clip: folders, or names on the hub.

    projection, decoder: the published files, .pth or safetensors. memory: see `read_memory`. heads: of the decoder.
    """

    projection: Path
    decoder: Path
    memory: Path
    dino: str = "facebook/dinov2-with-registers-base"
    clip: str = "openai/clip-vit-base-patch16"
    input_px: int = 518
    heads: int = 4
    temperature: float = 0.01
    name: str = "patch-ioner"


def build_published(parts: PublishedSystem, out: Path, progress: Progress) -> int:
    """Write a seer's folder; how many captions its memory has."""
    decoder = ReleasedDecoder.from_released(read_released(parts.decoder), open_clip_tokenizer(parts.clip), parts.heads)
    projection = load_talk2dino_projection(parts.projection)
    if projection.out != decoder.size:
        reason = f"reads vectors of {decoder.size} numbers, but the projection gives {projection.out}"
        raise InvalidFile(parts.decoder, reason, "are they of one system?")
    out.mkdir(parents=True, exist_ok=True)
    _save_projection(projection, out / PROJECTION)
    bank = read_memory(parts.memory, open_talk2dino_text(f"{parts.clip}+{out / PROJECTION}"), progress)
    bank.save(out / MEMORY)
    decoder.save_pretrained(out / WRITER)
    save_config(out, _config(parts))
    return len(bank)


def _config(parts: PublishedSystem) -> dict[str, Any]:
    return {
        "name": parts.name,
        "encoder": f"talk2dino:{parts.dino}",
        "input_px": parts.input_px,
        "detector": False,
        "class_names": False,
        "gap": "memory",
        "temperature": parts.temperature,
        "writers": {"published": WRITER},
        "blend": {},
        "least_similarity": 0.0,
        "least_grounding": 0.0,
        "alignment": "shared",
        "text_encoder": f"talk2dino:{parts.clip}+{PROJECTION}",
    }


def _save_projection(projection: Any, path: Path) -> None:
    from safetensors.torch import save

    names = {"first": "linear_layer", "second": "linear_layer2"}
    tensors = {
        f"{theirs}.{kind}": getattr(getattr(projection, ours), kind).detach().contiguous()
        for ours, theirs in names.items()
        for kind in ("weight", "bias")
    }
    with write_atomic(path) as file:
        file.write(save(tensors))


class _Remembered(msgspec.Struct):
    """One caption of a JSON memory; features: as the authors' text encoder gave them, if they are there."""

    caption: str
    features: list[float] | None = None


def read_memory(path: str | Path, encoder: TextEncoder, progress: Progress) -> MemoryBank:
    """A memory of captions, embedded here unless their features are given.

    path: JSON, either a list of captions, a list of {caption, features} or COCO's captions; text with one a line; or
    HDF5 as the authors' program keeps it, with NAME-embeddings and NAME-text.
    """
    file = Path(path)
    if file.suffix in (".h5", ".hdf5"):
        return _from_h5(file, encoder)
    if read_bytes(file).lstrip().startswith(b"["):
        return _from_list(file, encoder, progress)
    found = collect([file], progress=progress)
    return embedded(found.sentences, encoder, {"files": [file.name]}, progress=progress)


def _from_list(path: Path, encoder: TextEncoder, progress: Progress) -> MemoryBank:
    try:
        rows = msgspec.json.decode(read_bytes(path), type=list[str | _Remembered])
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"is no memory: {error}", "a list of captions, or of {caption, features}") from error
    told = [row if isinstance(row, _Remembered) else _Remembered(row) for row in rows]
    kept = [row for row in told if row.caption.strip()]
    if not kept:
        raise InvalidFile(path, "holds no caption")
    given = [row.features for row in kept if row.features is not None]
    source = {"files": [path.name]}
    if not given:
        return embedded([row.caption for row in kept], encoder, source, progress=progress)
    if len(given) < len(kept):
        raise InvalidFile(path, f"gives features of {len(given):,} captions and none of {len(kept) - len(given):,}")
    vectors = _as_rows(path, given)
    return MemoryBank(vectors, [row.caption for row in kept], _checked(path, vectors, encoder), source)


def _as_rows(path: Path, given: list[list[float]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    if len({len(row) for row in given}) > 1:
        raise InvalidFile(path, "gives features of different lengths")
    return np.array(given, dtype=np.float32)


def _from_h5(path: Path, encoder: TextEncoder) -> MemoryBank:
    with closing(H5File(path)) as file:
        name = next((one.removesuffix(_EMBEDDINGS) for one in file.names() if one.endswith(_EMBEDDINGS)), None)
        if name is None or f"{name}{_TEXTS}" not in file:
            raise InvalidFile(path, f"has no NAME{_EMBEDDINGS} and NAME{_TEXTS}")
        vectors = file.array(f"{name}{_EMBEDDINGS}", _LARGEST, "f").astype(np.float32)
        texts = file.texts(f"{name}{_TEXTS}")
    fingerprint = _checked(path, vectors, encoder)
    if len(texts) != len(vectors):
        raise InvalidFile(path, f"holds {len(vectors):,} features, but {len(texts):,} captions")
    # Their program leaves out rows of zeros, too.
    some = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0)
    kept = [i for i in some.tolist() if texts[i].strip()]
    return MemoryBank(vectors[kept], [texts[i] for i in kept], fingerprint, {"files": [path.name]})


def _checked(path: Path, vectors: np.ndarray[Any, np.dtype[np.float32]], encoder: TextEncoder) -> dict[str, Any]:
    if vectors.ndim != 2 or vectors.shape[1] != encoder.size:
        raise InvalidFile(path, f"has features of shape {vectors.shape}; the text encoder gives {encoder.size} numbers")
    return dict(encoder.fingerprint)
