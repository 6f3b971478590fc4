"""TraceVLM: a Qwen-VL that sees where somebody points, and cuts out what it speaks of.

photo → eye → merged tokens ─┐
trajectory → embedding ──────┴→ perception → language model → words · trajectories · six tokens → masks
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from saywhere.assets.checkpoint import BaseModel
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.models.common.modes import seeded
from saywhere.models.folder import SavedPart, built, load_part, save_part
from saywhere.models.tracevlm.batch import InstructionBatch, PointBatch
from saywhere.models.tracevlm.config import TraceVlmConfig
from saywhere.models.tracevlm.objective import ImageMasks
from saywhere.models.tracevlm.perception import Perception
from saywhere.models.tracevlm.prompts import PromptReader
from saywhere.models.tracevlm.qwen import SEGMENT_TOKENS, QwenBody, VisualFeatures, is_adapter, open_base
from saywhere.models.tracevlm.segmentation import MaskDecoder
from saywhere.models.tracevlm.trajectory import TrajectoryEmbedding

KIND = "tracevlm"
PARTS = ("trajectory", "perception", "tokens", "language", "vision", "segmentation")
"""What a stage may train."""


class TraceVLM(nn.Module):
    """body: the base, which gets adapters here. The parts of our own are float32, whatever the base is."""

    def __init__(self, config: TraceVlmConfig, body: QwenBody, seed: int = 0) -> None:
        super().__init__()
        self.config, self.body = config, body
        if body.width % config.heads:
            raise InvalidValue("TraceVLM config heads", f"{body.width} does not divide into {config.heads} heads")
        body.adapt(config.lora_rank, config.lora_alpha, seed)
        with seeded(seed):
            self.trajectory = TrajectoryEmbedding(body.width, config.code)
            self.perception = Perception(config, body.width)
            self.segmentation = MaskDecoder(config, body.width, body.patch_width) if config.mask_layers else None
        self.reader = PromptReader(body.inputs, config.context)

    @property
    def device(self) -> torch.device:
        return self.body.device

    def perceive(self, seen: VisualFeatures, points: PointBatch) -> tuple[VisualFeatures, list[Tensor]]:
        """The images with where somebody points put in, and the points' own features on each."""
        embedded = self.trajectory(points.rows)
        each = [rows[:count] for rows, count in zip(embedded, points.counts.tolist(), strict=True)]
        merged, refined = self.perception(seen.merged, each)
        return seen.with_merged(merged), refined

    def states(self, batch: InstructionBatch) -> tuple[Tensor, VisualFeatures, list[Tensor]]:
        """(b, n, width) last states of the texts, the images as they were read, and the points' features."""
        seen, refined = self.perceive(self.body.see(batch.pixels, batch.grids), batch.points)
        positions, _ = self.body.positions(batch.ids, batch.there, batch.grids)
        return self.body.read(batch.ids, batch.there, positions, seen), seen, refined

    def forward(self, batch: InstructionBatch) -> Tensor:
        """(b, n, words) scores of what comes after each token."""
        return self.body.say(self.states(batch)[0])

    def masks(
        self, states: Tensor, batch: InstructionBatch, seen: VisualFeatures, points: Sequence[Tensor]
    ) -> list[ImageMasks]:
        """Of each image with targets, their logits and truths."""
        targets, found = batch.targets, []
        places = targets.starts[:, None] + torch.arange(len(SEGMENT_TOKENS), device=states.device)
        tokens = states[targets.rows[:, None], places]
        keys = [(image, *size) for image, size in zip(targets.images.tolist(), targets.sizes.tolist(), strict=True)]
        for image, height, width in sorted(set(keys)):
            here = [number for number, key in enumerate(keys) if key == (image, height, width)]
            logits = self.cut_out(tokens[here], seen, image, points[image])
            found.append(ImageMasks(logits, targets.truths[here, :height, :width]))
        return found

    def cut_out(self, tokens: Tensor, seen: VisualFeatures, image: int, points: Tensor) -> Tensor:
        """(k, h, w) logits. tokens: (k, 6, width) states of the codebook's tokens."""
        if self.segmentation is None:
            raise InvalidValue("TraceVLM", "was made without layers for masks", "train one with mask_layers")
        patches = seen.patches[image]
        rows, cols = (n // self.body.inputs.merge for n in patches.shape[:2])
        masks: Tensor = self.segmentation(tokens, points, [seen.merged[image].view(rows, cols, -1), patches])
        return masks

    def parameters_of(self, part: str) -> list[nn.Parameter]:
        """The parameters of one of PARTS; of the base, its adapters or, with `whole_base`, its own."""
        if part not in PARTS:
            raise UnknownName("part of a TraceVLM", part, PARTS)
        if part in ("trajectory", "perception", "segmentation"):
            found = getattr(self, part)
            return [] if found is None else list(found.parameters())
        named = list(self.body.network.named_parameters())
        if part == "tokens":
            return [parameter for name, parameter in named if "trainable_tokens_delta" in name]
        mine = [(name, one) for name, one in named if ("visual." in name) == (part == "vision")]
        if self.config.whole_base:
            return [one for name, one in mine if not is_adapter(name)]
        return [one for name, one in mine if ".lora_" in name]

    def train_only(self, parts: Sequence[str]) -> None:
        """Freeze everything but some of PARTS."""
        self.requires_grad_(False)
        for part in parts:
            for parameter in self.parameters_of(part):
                parameter.requires_grad_(True)

    def save_pretrained(self, folder: str | Path) -> None:
        """Config and weights into a folder. The base is named there, not copied, unless it was trained as a whole."""
        save_part(folder, KIND, self.config.to_dict(), self.own_tensors(), base=self.body.base)

    def own_tensors(self) -> dict[str, Tensor]:
        """All that the base does not have."""
        return {
            name: tensor
            for name, tensor in self.state_dict().items()
            if self.config.whole_base or is_adapter(name) or not name.startswith("body.")
        }

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None, dtype: str = "float32") -> TraceVLM:
        """A network in eval mode, from a folder or the hub, with its base from where it was or the hub."""
        part = load_part(source, KIND, revision)
        config, base = _described(part)
        body = open_base(base, dtype, part.folder)
        model = built(lambda: cls(config, body), part)
        if absent := model.own_tensors().keys() - part.stored.keys():
            raise InvalidFile(part.folder, f"lacks {len(absent)} tensors, first {min(absent)!r}")
        return model.eval()


def described(source: str | Path) -> tuple[TraceVlmConfig, BaseModel, Path]:
    """The config of a saved TraceVLM, its base, and the folder that both are in."""
    part = load_part(source, KIND)
    return *_described(part), part.folder


def _described(part: SavedPart) -> tuple[TraceVlmConfig, BaseModel]:
    if part.base is None:
        raise InvalidFile(part.folder, "does not say which Qwen-VL it was made from")
    try:
        return TraceVlmConfig.from_dict(part.config), part.base
    except (InvalidValue, UnknownName) as error:
        raise InvalidFile(part.folder, f"is not a TraceVLM: {error}") from error
