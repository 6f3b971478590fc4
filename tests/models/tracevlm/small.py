"""Qwen-VLs of a few thousand random numbers, with a tokenizer of single letters, made without any download."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from saywhere.core import Box, Mask, Trace
from saywhere.models.tracevlm.config import TraceVlmConfig
from saywhere.models.tracevlm.examples import Instruction, SegmentTarget, answered, asked, save_instructions
from saywhere.models.tracevlm.network import TraceVLM
from saywhere.models.tracevlm.qwen import open_qwen
from saywhere.models.tracevlm.trajectory import Trajectory

KINDS = ("qwen2_5_vl", "qwen3_vl")
CONFIG = TraceVlmConfig(heads=4, code=8, mask_width=16, mask_heads=2, lora_rank=2)
ROWS = 320
SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|box_start|>", "<|box_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"),
)
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TRACE = Trace([(0.1, 0.2, 0.0), (0.5, 0.5, 0.4), (0.9, 0.3, 1.5)])
_TEXT = {
    **{"vocab_size": ROWS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048},
    **{"bos_token_id": None, "eos_token_id": None},
}
_VISION = {"depth": 2, "hidden_size": 24, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32}


def tokenizer() -> Any:
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    spelling = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    spelling.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    spelling.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=spelling, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.add_special_tokens({"additional_special_tokens": list(SPECIAL)})
    made.chat_template = TEMPLATE
    return made


def network(kind: str, tied: bool = False) -> Any:
    import transformers

    words = tokenizer()
    names = {"image_token_id": "image_pad", "video_token_id": "video_pad"}
    names |= {"vision_start_token_id": "vision_start", "vision_end_token_id": "vision_end"}
    ids = {key: words.convert_tokens_to_ids(f"<|{name}|>") for key, name in names.items()}
    rope = {"rope_type": "default", "rope_theta": 10_000.0}
    torch.manual_seed(0)
    if kind == "qwen2_5_vl":
        text = _TEXT | {"rope_parameters": rope | {"mrope_section": [1, 1, 2]}}
        vision = _VISION | {"patch_size": 14, "window_size": 56, "fullatt_block_indexes": [1]}
        config = transformers.Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=tied, **ids)
        return transformers.Qwen2_5_VLForConditionalGeneration(config).eval()
    text = _TEXT | {"head_dim": 8, "rope_parameters": rope | {"mrope_section": [2, 1, 1], "mrope_interleaved": True}}
    vision = _VISION | {"patch_size": 16, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]}
    config = transformers.Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=tied, **ids)
    return transformers.Qwen3VLForConditionalGeneration(config).eval()


def save_base(folder: Path, kind: str = "qwen2_5_vl", tied: bool = False) -> Path:
    """A folder as the hub has it."""
    from transformers import Qwen2VLImageProcessorPil

    patch = 14 if kind == "qwen2_5_vl" else 16
    network(kind, tied).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    Qwen2VLImageProcessorPil(
        patch_size=patch, size={"shortest_edge": 16 * patch**2, "longest_edge": 64 * patch**2}
    ).save_pretrained(folder)
    return folder


@cache
def base(kind: str = "qwen2_5_vl") -> Path:
    return save_base(Path(mkdtemp()) / kind, kind)


def model(kind: str = "qwen2_5_vl", config: TraceVlmConfig = CONFIG) -> TraceVLM:
    """A new one, in eval mode."""
    return TraceVLM(config, open_qwen(base(kind))).eval()


def awake(made: TraceVLM) -> TraceVLM:
    """With γ that lets trajectories through."""
    with torch.no_grad():
        for block in made.perception.blocks:
            block.gamma.copy_(torch.linspace(-2, 2, len(block.gamma)))
    return made


def photo(width: int = 120, height: int = 80, seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def half(height: int = 20, width: int = 30, *, left: bool = True) -> Mask:
    values = np.zeros((height, width))
    values[:, : width // 2] = 1
    return Mask(values if left else 1 - values)


def instructions() -> list[Instruction]:
    """One of every task, about two photos."""
    drawn, video = Trajectory(TRACE), Trajectory(TRACE, (0, 0, 1))
    one, both = ("a.png",), ("a.png", "b.png")
    masks = answered("it is ", SegmentTarget(half()), " and ", SegmentTarget(half(left=False)))
    talk = (asked("dialogue", drawn, "what?"), answered("a cup"), asked("dialogue", "where?"), answered(drawn))
    return [
        Instruction("caption", one, (asked("caption", drawn), answered("a cup"))),
        Instruction("describe", both, (asked("describe"), answered("two"))),
        Instruction("trajectory", one, (asked("trajectory", "a red cup"), answered(drawn))),
        Instruction("narrate", one, (asked("narrate"), answered("a cup ", drawn, " there"))),
        Instruction("interpret", both, (asked("interpret", video), answered("it moves"))),
        Instruction("ground", one, (asked("ground", "the cup"), answered(drawn))),
        Instruction("box", one, (asked("box", "the cup"), answered(Box(0.1, 0.2, 0.5, 0.6)))),
        Instruction("mask", one, (asked("mask", "cups"), masks)),
        Instruction("segment", both, (asked("segment", video), answered(SegmentTarget(half(), 1)))),
        Instruction("reason", one, (asked("reason", drawn, "why?"), answered("because"))),
        Instruction("dialogue", one, talk),
        Instruction("caption", one, (asked("caption", drawn), answered("a longer one"))),
    ]


def save_data(folder: Path) -> None:
    """What a run reads: photos, and instructions of all tasks."""
    folder.mkdir(parents=True, exist_ok=True)
    photo().save(folder / "a.png")
    photo(60, 90, seed=1).save(folder / "b.png")
    save_instructions(folder / "train.jsonl", instructions())
    save_instructions(folder / "validation.jsonl", instructions()[6:10])
