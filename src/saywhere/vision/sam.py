"""SAM's prompt encoder and mask decoder (Kirillov et al. 2023) as transformers has them, from the released weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue, require

_NAMES = (
    (r"^prompt_encoder\.point_embeddings\.", "prompt_encoder.point_embed."),
    (r"\.mask_downscaling\.0\.", ".mask_embed.conv1."),
    (r"\.mask_downscaling\.1\.", ".mask_embed.layer_norm1."),
    (r"\.mask_downscaling\.3\.", ".mask_embed.conv2."),
    (r"\.mask_downscaling\.4\.", ".mask_embed.layer_norm2."),
    (r"\.mask_downscaling\.6\.", ".mask_embed.conv3."),
    (r"\.output_upscaling\.0\.", ".upscale_conv1."),
    (r"\.output_upscaling\.1\.", ".upscale_layer_norm."),
    (r"\.output_upscaling\.3\.", ".upscale_conv2."),
    (r"\.norm(\d|_final_attn)\.", r".layer_norm\1."),
    (r"(mlps\.\d|iou_prediction_head)\.layers\.0\.", r"\1.proj_in."),
    (r"(mlps\.\d|iou_prediction_head)\.layers\.1\.", r"\1.layers.0."),
    (r"(mlps\.\d|iou_prediction_head)\.layers\.2\.", r"\1.proj_out."),
)
"""From the released names to those of transformers."""
_PLACES = "prompt_encoder.pe_layer.positional_encoding_gaussian_matrix"
_SHARED = ("shared_image_embedding.positional_embedding", "prompt_encoder.shared_embedding.positional_embedding")
_PARTS = ("prompt_encoder.", "mask_decoder.")


def sam_network(input_px: int, width: int, **decoder: int) -> nn.Module:
    """A `SamModel` without an image encoder, with random weights. input_px: the side of photos. width: channels of
    the map of features, in which a cell is 16 pixels. decoder: other sizes of the mask decoder."""
    needed_for = "cutting things out"
    config = require("transformers.models.sam.configuration_sam", needed_for=needed_for, extra="models")
    modeling = require("transformers.models.sam.modeling_sam", needed_for=needed_for, extra="models")
    # The released decoder was trained with torch's epsilon, not with transformers' default.
    sizes: dict[str, Any] = {"hidden_size": width, "layer_norm_eps": 1e-5, **decoder}
    whole = config.SamConfig(
        vision_config={"num_hidden_layers": 0, "num_pos_feats": width // 2, "image_size": input_px},
        prompt_encoder_config={"hidden_size": width, "image_size": input_px},
        mask_decoder_config=sizes,
    )
    # Its image encoder is of another kind, and is taken out before it costs anything.
    with torch.device("meta"):
        network: Any = modeling.SamModel(whole)
    network.vision_encoder = None
    network.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.1, generator=generator)
    fixed: nn.Module = network.eval().requires_grad_(False)
    return fixed


def load_sam(network: nn.Module, released: Mapping[str, Tensor]) -> None:
    """Take the released tensors of prompt encoder and mask decoder. All must be there, and all must be used."""
    named = {
        _our_name(name): tensor for name, tensor in released.items() if name.startswith(_PARTS) and name != _PLACES
    }
    named |= {name: released[_PLACES] for name in _SHARED if _PLACES in released}
    ours = network.state_dict()
    if different := sorted(ours.keys() ^ named.keys()):
        raise InvalidValue("weights", f"{len(different)} tensors are missing or too many, first {different[0]!r}")
    for name, tensor in named.items():
        if tensor.shape != ours[name].shape:
            raise InvalidValue("weights", f"{name!r} has shape {tuple(tensor.shape)}, not {tuple(ours[name].shape)}")
    network.load_state_dict(named)


def _our_name(released: str) -> str:
    for pattern, ours in _NAMES:
        released = re.sub(pattern, ours, released)
    return released
