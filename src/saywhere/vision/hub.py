"""Encoders whose networks come through the transformers library, from a folder or the hub, by one line of text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from saywhere.assets.checkpoint import Checkpoint, find_checkpoint
from saywhere.core.errors import InvalidValue, UnknownName, require
from saywhere.provenance import sha256_of

if TYPE_CHECKING:
    from saywhere.vision.transformer import Backbone, HubEncoder

# What stands after each prefix.
KINDS = {
    "dino": "dino:CHECKPOINT",
    "dinov2": "dinov2:CHECKPOINT",
    "dinov3": "dinov3:CHECKPOINT",
    "clip": "clip:CHECKPOINT",
    "invite": "invite:CLIP",
    "maskclip": "maskclip:CLIP",
    "proxyclip": "proxyclip:CLIP+DINO",
    "siglip2": "siglip2:CHECKPOINT",
    "talk2dino": "talk2dino:DINOV2",
    "dinotxt": "dinotxt:DINOV2+HEAD.safetensors",
}
_DINOS = {"dino": ("vit",), "dinov2": ("dinov2", "dinov2_with_registers"), "dinov3": ("dinov3_vit",)}


def open_hub_encoder(
    spec: str,
    *,
    input_px: int | None = None,
    revision: str | None = None,
    fit: str = "squash",
    attention_off: int | None = None,
) -> HubEncoder:
    """An encoder by "kind:checkpoint", such as "dinov2:facebook/dinov2-with-registers-base". See `KINDS`.

    A checkpoint is a folder or a name on the hub, fetched once; of two, the second follows a plus sign.
    input_px: side of the square input, by default what the network was trained for; positions are interpolated.
    revision: of the checkpoint, where there is one only. fit: how the photo is brought into the square, by default
    stretched, so that all of it is seen: "squash", "centre_crop" or "letterbox".
    attention_off: for INViTE, in how many of the last blocks tokens attend to themselves alone; by default 1.
    """
    kind, parts = _parsed(spec)
    if revision is not None and len(parts) > 1:
        raise InvalidValue("revision", "is given, but there are two sources", "name its folder instead")
    if attention_off is not None and kind != "invite":
        raise InvalidValue("attention_off", f"is for invite, not for {kind}")
    for module in ("torch", "transformers"):
        require(module, needed_for=f"the encoder {spec!r}", extra="models")
    from saywhere.vision.transformer import HubEncoder

    made = _made(kind, parts, find_checkpoint(parts[0], revision), attention_off)
    return HubEncoder(made.backbone, kind, made.checkpoints, input_px, fit, made.options)


@dataclass(frozen=True, slots=True)
class _Made:
    """A network, what it was read from, and what else its features depend on."""

    backbone: Backbone
    checkpoints: tuple[Checkpoint, ...]
    options: dict[str, str | int] = field(default_factory=dict)


def _parsed(spec: str) -> tuple[str, list[str]]:
    """The kind, and the one or two sources that it needs."""
    kind, colon, rest = spec.partition(":")
    if kind not in KINDS or not colon:
        raise UnknownName("encoder", spec if not colon else kind, KINDS)
    parts = rest.split("+") if "+" in KINDS[kind] else [rest]
    if not all(parts) or len(parts) != 1 + KINDS[kind].count("+"):
        raise InvalidValue("encoder", f"{spec!r} does not name its sources", f"write {KINDS[kind]}")
    return kind, parts


def _made(kind: str, parts: list[str], first: Checkpoint, attention_off: int | None) -> _Made:
    from saywhere.vision.dino import Talk2DinoBackbone, load_dino

    match kind:
        case "siglip2":
            from saywhere.vision.siglip import load_siglip

            return _Made(load_siglip(first), (first,))
        case "talk2dino":
            return _Made(Talk2DinoBackbone(load_dino(first, *_DINOS["dinov2"])), (first,))
        case "dinotxt":
            return _made_dinotxt(first, Path(parts[1]).expanduser())
        case "clip" | "invite" | "maskclip":
            return _made_clip(kind, first, attention_off)
        case "proxyclip":
            from saywhere.vision.clip import ProxyClipBackbone, load_clip

            second = find_checkpoint(parts[1])
            dino = load_dino(second, *(name for names in _DINOS.values() for name in names))
            return _Made(ProxyClipBackbone(*load_clip(first), dino), (first, second), {"dino_pixels": str(dino.pixels)})
        case _:
            return _Made(load_dino(first, *_DINOS[kind]), (first,))


def _made_clip(kind: str, checkpoint: Checkpoint, attention_off: int | None) -> _Made:
    from saywhere.vision.clip import ClipBackbone, InviteBackbone, MaskClipBackbone, load_clip

    network, pixels = load_clip(checkpoint)
    if kind == "invite":
        off = 1 if attention_off is None else attention_off
        return _Made(InviteBackbone(network, pixels, off), (checkpoint,), {"attention_off": off})
    return _Made((ClipBackbone if kind == "clip" else MaskClipBackbone)(network, pixels), (checkpoint,))


def _made_dinotxt(checkpoint: Checkpoint, head: Path) -> _Made:
    from saywhere.vision.dino import load_dino
    from saywhere.vision.dinotxt import DinoTxtBackbone, load_head

    dino = load_dino(checkpoint, *_DINOS["dinov2"])
    backbone = DinoTxtBackbone(dino, load_head(head, dino.heads))
    return _Made(backbone, (checkpoint,), {"head_sha256": sha256_of(head)})
