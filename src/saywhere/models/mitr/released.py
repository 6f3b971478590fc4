"""The authors' checkpoints: their parameter names, and ours.

Their tables have V + 1 rows and token 0 for begin, end and padding. Our tables have the same rows (see
`layers.ROW_OFFSET`), so every array is taken as it is: their token n is our id n + 2, their 0 is read as our begin
(id 1) and said as our end (id 2). `Vocabulary.of_released` turns their word list into ours.

Their files are pickles, which saywhere does not open. Read one yourself, if you trust it, with
`torch.load(path, weights_only=True)`, and hand over the mapping, or the path of a safetensors file that you made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from saywhere.assets.checkpoint import read_tensors
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.models.mitr.config import MitrConfig
from saywhere.models.mitr.network import MITR

_ATTENTION = {"query": "linears.0", "key": "linears.1", "value": "linears.2", "out": "linears.3"}
_PICKLED = (".pth", ".pt", ".bin", ".pkl", ".ckpt")
_FEED = {"fc1": "w_1", "fc2": "w_2"}
_DECODER = "model.decoder.layer"
# Place of each fusion's two norms among the authors' sub-layers; the streams' follow from 8 on, four to a layer.
_FUSIONS = {
    "trace_fusion": ("trace_caption_attn", "feed_forward_trace", 0, 1),
    "caption_fusion": ("caption_trace_attn", "feed_forward_caption", 2, 3),
    "joint_caption_fusion": ("both_caption_trace_attn", "both_feed_forward_caption", 4, 6),
    "joint_trace_fusion": ("both_trace_caption_attn", "both_feed_forward_trace", 5, 7),
}
_FIRST_STREAM_NORM = 8
_POSITIONS = "position_encoder.pe"


def released_names(layers: int) -> dict[str, str]:
    """For each of our parameters, the authors' name for it."""
    names: dict[str, str] = {}
    plain = {
        "regions.feature": "att_embed.0",
        "regions.feature_norm": "att_layernorm",
        "regions.box": "box_embed.0",
        "regions.box_norm": "box_layernorm1",
        "regions.norm": "box_layernorm2",
        "trace.box": "model.trace_embed.0",
        "trace.box_norm": "model.trace_embed.1",
        "trace.norm": "model.trace_layernorm_trace",
        "unread": "model.trace_layernorm_caption",
        "say": "model.generator_caption.proj",
        "point": "model.generator_trace.0",
    }
    for ours, theirs in plain.items():
        names |= _linear(ours, theirs)
    names["words.table.weight"] = "model.tgt_embed.embed.lut.weight"
    names |= _norm("encoder_norm", "model.encoder.norm")
    names |= _norm("norm", "model.decoder.norm")
    names |= _norm("joint_trace_norm", "model.decoder.norm_2")
    for i in range(layers):
        names |= _encoder_layer(i)
        names |= _stream_layer("word_stream", "", i, 0)
        names |= _stream_layer("trace_stream", "trace_", i, 2)
    for ours, (attention, feed, first, second) in _FUSIONS.items():
        names |= _attention(f"{ours}.other_attention", f"{_DECODER}.{attention}")
        names |= _feed(f"{ours}.feed", f"{_DECODER}.{feed}")
        names |= _norm(f"{ours}.other_norm", f"{_DECODER}.sublayer.{first}.norm")
        names |= _norm(f"{ours}.feed_norm", f"{_DECODER}.sublayer.{second}.norm")
    return names


def from_released(state: Mapping[str, object] | str | Path, heads: int = 8) -> MITR:
    """A MITR of any number of layers with the authors' parameters; all sizes but the heads follow from the shapes.

    state: arrays or tensors under the authors' names, or a safetensors file with them. A missing, surplus or misshapen
    parameter is refused, and so is a pickle: loading one runs whatever code is in it.
    """
    if isinstance(state, str | Path):
        if Path(state).suffix in _PICKLED:
            raise InvalidFile(state, "is a pickle, which saywhere never opens", "save its tensors as safetensors")
        state = dict(read_tensors(state))
    arrays = {name: _tensor(name, value) for name, value in state.items() if not name.endswith(_POSITIONS)}
    config = _config(arrays, heads)
    names = released_names(config.layers)
    surplus = sorted(set(arrays) - set(names.values()))
    missing = sorted(set(names.values()) - set(arrays))
    if surplus or missing:
        raise InvalidValue(
            "released parameters",
            f"{len(missing)} missing ({', '.join(missing[:3])} …), {len(surplus)} unknown ({', '.join(surplus[:3])} …)",
            "only the authors' mirrored transformer without batch norm can be read",
        )
    model = MITR(config)
    own = model.state_dict()
    for ours, theirs in names.items():
        if own[ours].shape != arrays[theirs].shape:
            shapes = f"{tuple(arrays[theirs].shape)}, not {tuple(own[ours].shape)}"
            raise InvalidValue(f"released parameter {theirs}", f"has shape {shapes}")
    model.load_state_dict({ours: arrays[theirs] for ours, theirs in names.items()})
    return model.eval()


def to_released(model: MITR) -> dict[str, torch.Tensor]:
    """Our parameters under the authors' names. The eye, which theirs has not, is left out."""
    own = model.state_dict()
    return {theirs: own[ours] for ours, theirs in released_names(model.config.layers).items()}


def _config(arrays: Mapping[str, torch.Tensor], heads: int) -> MitrConfig:
    needed = ("att_embed.0.weight", "model.tgt_embed.embed.lut.weight", f"{_DECODER}.feed_forward_caption.w_1.weight")
    for name in needed:
        if name not in arrays or arrays[name].ndim != 2:
            raise InvalidValue("released parameters", f"hold no matrix {name!r}", "is this the authors' MITR?")
    width, region_size = arrays[needed[0]].shape
    layers = {name.split(".")[3] for name in arrays if name.startswith("model.encoder.layers.")}
    return MitrConfig(
        words=arrays[needed[1]].shape[0] - 1,
        region_size=region_size,
        width=width,
        heads=heads,
        feed_forward=arrays[needed[2]].shape[0],
        layers=max(1, len(layers)),
    )


def _tensor(name: str, value: object) -> torch.Tensor:
    array = value.detach().clone() if isinstance(value, torch.Tensor) else np.asarray(value)
    if isinstance(array, np.ndarray):
        if array.dtype.kind != "f":
            raise InvalidValue(f"released parameter {name}", f"holds {array.dtype}, not real numbers")
        array = torch.from_numpy(array.copy())
    return array.float()


def _linear(ours: str, theirs: str) -> dict[str, str]:
    return {f"{ours}.{part}": f"{theirs}.{part}" for part in ("weight", "bias")}


def _norm(ours: str, theirs: str) -> dict[str, str]:
    return {f"{ours}.scale": f"{theirs}.a_2", f"{ours}.shift": f"{theirs}.b_2"}


def _attention(ours: str, theirs: str) -> dict[str, str]:
    return {k: v for a, b in _ATTENTION.items() for k, v in _linear(f"{ours}.{a}", f"{theirs}.{b}").items()}


def _feed(ours: str, theirs: str) -> dict[str, str]:
    return {k: v for a, b in _FEED.items() for k, v in _linear(f"{ours}.{a}", f"{theirs}.{b}").items()}


def _encoder_layer(i: int) -> dict[str, str]:
    ours, theirs = f"encoder.{i}", f"model.encoder.layers.{i}"
    return {
        **_attention(f"{ours}.attention", f"{theirs}.self_attn"),
        **_feed(f"{ours}.feed", f"{theirs}.feed_forward"),
        **_norm(f"{ours}.attention_norm", f"{theirs}.sublayer.0.norm"),
        **_norm(f"{ours}.feed_norm", f"{theirs}.sublayer.1.norm"),
    }


def _stream_layer(stream: str, prefix: str, i: int, first: int) -> dict[str, str]:
    ours, norm = f"{stream}.layers.{i}", _FIRST_STREAM_NORM + 4 * i + first
    return {
        **_attention(f"{ours}.self_attention", f"{_DECODER}.{prefix}self_attn.{i}"),
        **_attention(f"{ours}.image_attention", f"{_DECODER}.{prefix}src_attn.{i}"),
        **_norm(f"{ours}.self_norm", f"{_DECODER}.sublayer.{norm}.norm"),
        **_norm(f"{ours}.image_norm", f"{_DECODER}.sublayer.{norm + 1}.norm"),
    }
