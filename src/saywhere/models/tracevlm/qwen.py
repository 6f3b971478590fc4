"""The body: any Qwen2.5-VL or Qwen3-VL of the transformers library, with eight tokens and adapters of our own.

The library lets a forward pass be given what its eye saw (`mm_encoder_outputs`); that is where perception comes in,
after the patch merger, with one token for each 28 × 28 or 32 × 32 pixels in raster order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from PIL import Image
from torch import Tensor, nn

from saywhere.assets.checkpoint import BaseModel, Checkpoint, find_checkpoint
from saywhere.assets.hub import local_folder
from saywhere.core import Frame
from saywhere.core.errors import InvalidFile, InvalidValue, require
from saywhere.models.common.modes import seeded

KINDS: Final = {
    "qwen2_5_vl": "Qwen2_5_VLForConditionalGeneration",
    "qwen3_vl": "Qwen3VLForConditionalGeneration",
}
TRAJECTORY_TOKENS: Final = ("<traj>", "</traj>")
SEGMENT_TOKENS: Final = tuple(f"<seg_{scale}_{i}>" for scale in range(2) for i in range(3))
"""The codebook: three tokens for each of two scales, the coarser first."""
_IMAGE, _BOX = "<|image_pad|>", ("<|box_start|>", "<|box_end|>")
_FILES = ("*.json", "*.safetensors", "*.txt", "*.jinja")
_LANGUAGE = r".*language_model\..*\.(q|k|v|o|gate|up|down)_proj"
_VISION = r".*visual\.blocks\..*\.(qkv|proj|gate_proj|up_proj|down_proj|linear_fc1|linear_fc2)"
_EXTRA = "vlm"
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class VisualFeatures:
    """What the eye saw of some images.

    output: the library's, with `pooler_output` a tensor (n, width) for each image. patches: (rows, cols, d) of each,
    before the merger. grids: (m, 3) frames (always 1), rows and columns of patches.
    """

    output: Any
    patches: tuple[Tensor, ...]
    grids: Tensor

    @property
    def merged(self) -> tuple[Tensor, ...]:
        return tuple(self.output.pooler_output)

    def with_merged(self, merged: Sequence[Tensor]) -> VisualFeatures:
        return replace(self, output=replace(self.output, pooler_output=tuple(merged)))

    def repeated(self, times: int) -> VisualFeatures:
        """The same images once more for each of `times` texts."""
        deep = getattr(self.output, "deepstack_features", None)
        more = {} if deep is None else {"deepstack_features": [tuple(level) * times for level in deep]}
        output = replace(self.output, pooler_output=self.merged * times, **more)
        return VisualFeatures(output, self.patches * times, self.grids.repeat(times, 1))


class QwenInput:
    """How photos and words become what a Qwen-VL reads: its tokenizer with our tokens, its image processor, and what
    its config says. No weights are needed for it."""

    def __init__(self, config: Any, tokenizer: Any, image_processor: Any) -> None:
        self.tokenizer, self.image_processor = tokenizer, image_processor
        self.merge = int(config.vision_config.spatial_merge_size)
        self.token_px = int(config.vision_config.patch_size) * self.merge
        """The side of what one visual token shows, in pixels of the resized photo."""
        self.context = int(config.text_config.max_position_embeddings)
        self.special = _placed_tokens(tokenizer)

    @property
    def padding(self) -> int:
        return int(self.tokenizer.pad_token_id or 0)

    def prepare(self, photos: Sequence[Image.Image]) -> tuple[Tensor, Tensor]:
        """Pixels of all photos, (patches, numbers), and (m, 3) their grids, each in its own aspect."""
        for photo in photos:
            width, height = photo.size
            if max(width, height) > _LONGEST * min(width, height):
                raise InvalidValue("photo", f"{width}×{height} is more than {_LONGEST} times longer than wide")
        read = self.image_processor(images=list(photos), return_tensors="pt")
        return read["pixel_values"], read["image_grid_thw"]

    def token_counts(self, grids: Tensor) -> list[int]:
        """How many tokens each image of (m, 3) grids takes."""
        counts: list[int] = (grids.prod(dim=1) // self.merge**2).tolist()
        return counts

    def frame(self, photo_size: tuple[int, int], grid: Tensor) -> Frame:
        """How a photo was resized to a grid."""
        patch = self.token_px // self.merge
        _, rows, cols = grid.tolist()
        return Frame.squash(photo_size, (cols * patch, rows * patch), self.token_px)


class QwenBody(nn.Module):
    """network: of the transformers library. inputs: what it reads. base: its reference."""

    def __init__(self, network: Any, inputs: QwenInput, base: BaseModel) -> None:
        super().__init__()
        self.network, self.inputs, self.base = network, inputs, base
        self.kind: str = network.config.model_type
        # Our tokens take rows that the embeddings have to spare: the matrix grows only if there are too few.
        if max(inputs.special.values()) >= network.get_input_embeddings().num_embeddings:
            network.resize_token_embeddings(max(inputs.special.values()) + 1)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def width(self) -> int:
        """Of the language model, and of what it sees."""
        return int(self.network.config.text_config.hidden_size)

    @property
    def patch_width(self) -> int:
        return int(self.network.config.vision_config.hidden_size)

    @property
    def outputs(self) -> int:
        """Tokens that are scored; the last ones may stand for nothing."""
        return int(self.network.get_output_embeddings().weight.shape[0])

    def adapt(self, rank: int, alpha: int, seed: int = 0) -> None:
        """Put adapters into the language model and the eye, and make the rows of our tokens trainable."""
        peft = require("peft", needed_for="adapters in a Qwen-VL", extra=_EXTRA)
        ids = [self.inputs.special[name] for name in (*TRAJECTORY_TOKENS, *SEGMENT_TOKENS)]
        rows = ["embed_tokens", *([] if self.network.config.tie_word_embeddings else ["lm_head"])]
        settings = peft.LoraConfig(
            r=rank,
            lora_alpha=alpha,
            target_modules=f"{_LANGUAGE}|{_VISION}",
            trainable_token_indices=dict.fromkeys(rows, ids),
        )
        with seeded(seed):
            peft.inject_adapter_in_model(settings, self.network)
        for name, parameter in self.network.named_parameters():
            if is_adapter(name):
                parameter.data = parameter.data.float()

    def checkpoint_gradients(self) -> None:
        """Keep less for the backward pass, and compute it anew."""
        self.network.gradient_checkpointing_enable({"use_reentrant": False})

    def see(self, pixels: Tensor, grids: Tensor) -> VisualFeatures:
        output = self.network.model.get_image_features(pixels, grids, return_dict=True)
        return VisualFeatures(output, self._raster(output.last_hidden_state, grids), grids)

    def positions(self, ids: Tensor, there: Tensor, grids: Tensor) -> tuple[Tensor, Tensor]:
        """(3, b, n) where each token stands, and (b, 1) how much the next ones stand ahead of their number."""
        kinds = (ids == self.inputs.special[_IMAGE]).long()
        placed: tuple[Tensor, Tensor] = self.network.model.get_rope_index(
            ids, mm_token_type_ids=kinds, image_grid_thw=grids, attention_mask=there.long()
        )
        return placed

    def read(
        self, ids: Tensor, there: Tensor, positions: Tensor, seen: VisualFeatures | None = None, cache: Any = None
    ) -> Tensor:
        """(b, n, width) last states. there: (b, n with what the cache holds), False for padding. seen: the images
        that the tokens stand for."""
        output = self.network.model(
            input_ids=ids,
            attention_mask=there.long(),
            position_ids=positions,
            past_key_values=cache,
            use_cache=cache is not None,
            mm_encoder_outputs=None if seen is None else {"image": seen.output},
        )
        states: Tensor = output.last_hidden_state
        return states

    def say(self, states: Tensor) -> Tensor:
        """(…, words) scores from (…, width) states."""
        scores: Tensor = self.network.lm_head(states)
        return scores

    def new_cache(self) -> Any:
        transformers = require("transformers", needed_for="a Qwen-VL", extra=_EXTRA)
        return transformers.DynamicCache(config=self.network.config.text_config)

    def _raster(self, states: Tensor, grids: Tensor) -> tuple[Tensor, ...]:
        """(rows, cols, d) patches of each image: the eye keeps them in blocks that are merged, and those in windows."""
        merge = self.inputs.merge
        blocks = states.view(-1, merge * merge, states.shape[-1])
        if self.kind == "qwen2_5_vl":
            from transformers.vision_utils import get_vision_window_index

            vision = self.network.config.vision_config
            index, _ = get_vision_window_index(grids, merge, vision.window_size, vision.patch_size)
            blocks = blocks[torch.argsort(index)]
        sizes = [(rows // merge, cols // merge) for _, rows, cols in grids.tolist()]
        parts = torch.split(blocks, [rows * cols for rows, cols in sizes])
        return tuple(
            part.view(rows, cols, merge, merge, -1).transpose(1, 2).reshape(rows * merge, cols * merge, -1)
            for part, (rows, cols) in zip(parts, sizes, strict=True)
        )


def is_adapter(name: str) -> bool:
    """Whether a parameter of the network was put there by `QwenBody.adapt`."""
    return ".lora_" in name or "trainable_tokens" in name


def open_qwen(source: str | Path, dtype: str = "float32", revision: str | None = None) -> QwenBody:
    """A Qwen-VL from a folder or, as "owner/name", from the hub. dtype: of its parameters, such as "bfloat16"."""
    found = _found(source, revision)
    return _body(found, BaseModel(str(source), found.sha256(), revision), dtype)


def open_base(base: BaseModel, dtype: str = "float32", beside: str | Path = ".") -> QwenBody:
    """The Qwen-VL of a reference, if it is still the same. beside: what a source like "../base" starts from."""
    _found(_beside(base, beside), base.revision)
    return _body(base.open(beside), base, dtype)


def open_input(source: str | Path, revision: str | None = None) -> QwenInput:
    """How a Qwen-VL reads, without its weights."""
    return _input(_found(source, revision))


def input_of_base(base: BaseModel, beside: str | Path = ".") -> QwenInput:
    return open_input(_beside(base, beside), base.revision)


def _beside(base: BaseModel, beside: str | Path) -> str | Path:
    folder = Path(beside) / base.source
    return folder if folder.is_dir() else base.source


def _found(source: str | Path, revision: str | None) -> Checkpoint:
    local_folder(source, _FILES, revision)
    found = find_checkpoint(source, revision)
    if found.model_type not in KINDS:
        raise InvalidFile(found.folder, f"holds a {found.model_type!r}, not {' or '.join(map(repr, KINDS))}")
    return found


def _body(found: Checkpoint, base: BaseModel, dtype: str) -> QwenBody:
    return QwenBody(found.load(KINDS[found.model_type], list(KINDS), dtype), _input(found), base)


def _input(found: Checkpoint) -> QwenInput:
    transformers = require("transformers", needed_for="a Qwen-VL", extra=_EXTRA)
    folder = found.folder
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        processor = transformers.Qwen2VLImageProcessorPil.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise InvalidFile(folder, f"lacks its tokenizer or its image processor: {error}") from error
    tokenizer.chat_template = tokenizer.chat_template or _chat_template(folder)
    return QwenInput(config, tokenizer, processor)


def _chat_template(folder: Path) -> str:
    for name in ("chat_template.jinja", "chat_template.json"):
        if (path := folder / name).is_file():
            text = path.read_text(encoding="utf-8")
            return text if name.endswith("jinja") else str(json.loads(text)["chat_template"])
    raise InvalidFile(folder, "has no chat template")


def _placed_tokens(tokenizer: Any) -> dict[str, int]:
    """Ids of the special tokens that prompts are made of; ours are added after all others."""
    ours = [*TRAJECTORY_TOKENS, *SEGMENT_TOKENS]
    tokenizer.add_special_tokens({"additional_special_tokens": ours}, replace_extra_special_tokens=False)
    names = [*ours, _IMAGE, *_BOX]
    ids = dict(zip(names, tokenizer.convert_tokens_to_ids(names), strict=True))
    if absent := [name for name, number in ids.items() if number is None or number == tokenizer.unk_token_id]:
        raise InvalidValue("tokenizer", f"has no token {absent[0]!r}, so it is not that of a Qwen-VL")
    return ids
