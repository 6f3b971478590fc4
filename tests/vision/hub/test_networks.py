"""What each family does inside, held against transformers' own attention, hand-made sums and each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

from saywhere.assets.checkpoint import find_checkpoint
from saywhere.core import InvalidValue
from saywhere.vision.clip import (
    ClipBackbone,
    InviteBackbone,
    MaskClipBackbone,
    ProxyClipBackbone,
    affinities,
    load_clip,
)
from saywhere.vision.dino import DinoBackbone, Talk2DinoBackbone, load_dino
from saywhere.vision.dinotxt import DinoTxtBackbone, DinoTxtHead, HeadConfig
from saywhere.vision.hub import open_hub_encoder
from saywhere.vision.pixels import CLIP, IMAGENET, SIGLIP
from saywhere.vision.siglip import SiglipBackbone
from saywhere.vision.transformer import class_attention
from tests.vision.hub import tiny
from tests.vision.hub.conftest import MakePhoto

GRID = (4, 4)


def photos(seed: int = 0, side: int = tiny.SIDE) -> Tensor:
    return torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(seed))


def clip_tower(checkpoints: dict[str, str]) -> Any:
    return load_clip(find_checkpoint(checkpoints["clip"]))[0]


@torch.no_grad()
def test_class_attention_is_the_mean_over_heads_of_a_softmax_over_patches() -> None:
    # One head attends evenly; the other has scores ln 3 · (1, 0) after division by √2.
    query = torch.tensor([[0.0, 0.0, math.log(3) * math.sqrt(2), 0.0]])
    keys = torch.tensor([[[5.0, 5.0, 1.0, 0.0], [-3.0, 2.0, 0.0, 9.0]]])
    torch.testing.assert_close(class_attention(query, keys, 2), torch.tensor([[0.625, 0.375]]))


@pytest.mark.parametrize("side", [16, 24])
@pytest.mark.parametrize("name", ["clip", "dino", "dinov2", "dinov2_with_registers", "dinov3"])
@torch.no_grad()
def test_the_attention_kept_is_the_one_that_eager_attention_reports(
    checkpoints: dict[str, str], name: str, side: int
) -> None:
    checkpoint = find_checkpoint(checkpoints[name])
    backbone = ClipBackbone(*load_clip(checkpoint)) if name == "clip" else load_dino(checkpoint, checkpoint.model_type)
    attention = backbone.see(photos(side=side)).attention
    backbone.network.set_attn_implementation("eager")
    asked = {"interpolate_pos_encoding": True} if name in ("clip", "dino") else {}
    reported = backbone.network(pixel_values=photos(side=side), output_attentions=True, **asked).attentions[-1]
    assert reported.shape[1] == tiny.HEADS
    first = reported.shape[-1] - (side // tiny.PATCH) ** 2
    assert first == {"dinov2_with_registers": 3, "dinov3": 3}.get(name, 1)
    on_patches = reported[:, :, 0, first:]
    expected = (on_patches / on_patches.sum(dim=-1, keepdim=True)).mean(dim=1)
    assert attention is not None
    assert expected.std() > 0.001
    torch.testing.assert_close(attention.flatten(1), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_dinos_patches_are_the_normed_last_tokens_without_class_and_registers() -> None:
    backbone = DinoBackbone(tiny.dinov2_with_registers(), IMAGENET)
    out = backbone.network(pixel_values=photos()).last_hidden_state
    seen = backbone.see(photos())
    assert out.shape[1] == 1 + 2 + 16
    torch.testing.assert_close(seen.patches, out[:, 3:].reshape(2, 4, 4, tiny.SIZE))
    torch.testing.assert_close(seen.whole, out[:, 0])


@torch.no_grad()
def test_clips_whole_is_its_image_vector_and_its_patches_share_norm_and_projection() -> None:
    full = tiny.clip()
    backbone = ClipBackbone(_vision_part(full), CLIP)
    out = full.vision_model(pixel_values=photos())
    seen = backbone.see(photos())
    torch.testing.assert_close(seen.whole, full.visual_projection(out.pooler_output))
    normed = full.vision_model.post_layernorm(out.last_hidden_state[:, 1:])
    torch.testing.assert_close(seen.patches.flatten(1, 2), full.visual_projection(normed))


def _vision_part(full: Any) -> Any:
    tower = transformers.CLIPVisionModelWithProjection(full.config.vision_config).eval()
    tower.vision_model.load_state_dict(full.vision_model.state_dict())
    tower.visual_projection.load_state_dict(full.visual_projection.state_dict())
    return tower


@torch.no_grad()
def test_invite_with_no_block_switched_off_is_plain_clip(checkpoints: dict[str, str]) -> None:
    tower = clip_tower(checkpoints)
    plain, off = ClipBackbone(tower, CLIP).see(photos()), InviteBackbone(tower, CLIP, 0).see(photos())
    torch.testing.assert_close(off.patches, plain.patches)
    assert not torch.allclose(InviteBackbone(tower, CLIP, 1).see(photos()).patches, plain.patches, atol=1e-2)


@pytest.mark.parametrize("blocks", [1, 2, 3])
@torch.no_grad()
def test_invite_is_clip_whose_last_blocks_mask_all_but_the_token_itself(
    checkpoints: dict[str, str], blocks: int
) -> None:
    tower = clip_tower(checkpoints)
    backbone = InviteBackbone(tower, CLIP, blocks)
    state = backbone.states(photos())[0][tiny.BLOCKS - blocks]
    only_itself = torch.full((17, 17), -torch.inf).fill_diagonal_(0).expand(2, 1, -1, -1)
    for layer in backbone.layers[tiny.BLOCKS - blocks :]:
        state = layer(state, attention_mask=only_itself)
    expected = backbone.projected(state[:, 1:])
    torch.testing.assert_close(backbone.see(photos()).patches.flatten(1, 2), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_maskclip_is_the_last_blocks_value_alone(checkpoints: dict[str, str]) -> None:
    tower = clip_tower(checkpoints)
    backbone = MaskClipBackbone(tower, CLIP)
    layer = backbone.layers[-1]
    entering = layer.layer_norm1(backbone.states(photos())[0][tiny.BLOCKS - 1][:, 1:])
    expected = backbone.projected(layer.self_attn.out_proj(layer.self_attn.v_proj(entering)))
    torch.testing.assert_close(backbone.see(photos()).patches.flatten(1, 2), expected)


@torch.no_grad()
def test_proxyclip_whose_patches_belong_to_themselves_alone_is_maskclip(checkpoints: dict[str, str]) -> None:
    tower = clip_tower(checkpoints)
    proxy = ProxyClipBackbone(tower, CLIP, DinoBackbone(tiny.dinov2(), IMAGENET))
    states = proxy.states(photos())[0]
    mixed = proxy.mixed(states[-2][:, 1:], GRID, torch.eye(16).expand(2, -1, -1), GRID)
    torch.testing.assert_close(proxy.projected(mixed), MaskClipBackbone(tower, CLIP).see(photos()).patches)
    # And so it is by its own doing where β is so large that everything else is masked.
    alone = ProxyClipBackbone(tower, CLIP, DinoBackbone(tiny.dinov2(), IMAGENET), beta=1e6)
    torch.testing.assert_close(alone.see(photos()).patches, MaskClipBackbone(tower, CLIP).see(photos()).patches)
    assert not torch.allclose(proxy.see(photos()).patches, alone.see(photos()).patches, atol=1e-3)


def test_affinities_are_the_published_formula() -> None:
    # Cosines 1, 0.6 and 0 / 0.8; their mean over all nine is 5.8 / 9.
    patches = torch.tensor([[[2.0, 0.0], [1.8, 2.4], [0.0, 0.5]]])
    cosines = np.array([[1, 0.6, 0], [0.6, 1, 0.8], [0, 0.8, 1]])
    scores = 3.0 * (cosines - 1.2 * 5.8 / 9)
    weights = np.where(scores < 0, 0, np.exp(scores))
    expected = weights / weights.sum(axis=1, keepdims=True)
    assert (expected == 0).sum() == 4
    np.testing.assert_allclose(affinities(patches)[0].numpy(), expected, atol=1e-6)


def test_the_affinities_of_a_photo_do_not_depend_on_the_photos_beside_it() -> None:
    patches = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(affinities(patches)[1:2], affinities(patches[1:2]))


def test_patches_that_are_all_alike_belong_to_themselves() -> None:
    torch.testing.assert_close(affinities(torch.ones(1, 3, 4)), torch.eye(3)[None])


@torch.no_grad()
def test_proxyclip_shows_dino_the_same_photo_in_dinos_colours() -> None:
    shown = []
    dino = DinoBackbone(tiny.dinov2(), IMAGENET)
    dino.network.register_forward_pre_hook(lambda _m, _a, k: shown.append(k["pixel_values"]), with_kwargs=True)
    tower = _vision_part(tiny.clip())
    colours = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    mean, std = (torch.tensor(numbers)[:, None, None] for numbers in (CLIP.mean, CLIP.std))
    ProxyClipBackbone(tower, CLIP, dino).see((colours - mean) / std)
    mean, std = (torch.tensor(numbers)[:, None, None] for numbers in (IMAGENET.mean, IMAGENET.std))
    torch.testing.assert_close(shown[0], (colours - mean) / std, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_talk2dinos_whole_is_the_attention_weighted_mean_of_its_patches() -> None:
    dino = DinoBackbone(tiny.dinov2_with_registers(), IMAGENET)
    seen, plain = Talk2DinoBackbone(dino).see(photos()), dino.see(photos())
    assert seen.attention is not None
    torch.testing.assert_close(seen.patches, plain.patches)
    expected = (seen.attention[..., None] * seen.patches).sum(dim=(1, 2))
    torch.testing.assert_close(seen.whole, expected)


@torch.no_grad()
def test_siglips_patch_is_what_the_pooling_head_makes_of_it_alone() -> None:
    backbone = SiglipBackbone(tiny.siglip(), SIGLIP)
    out = backbone.network(pixel_values=photos())
    seen = backbone.see(photos())
    torch.testing.assert_close(seen.whole, out.pooler_output)
    # Alone in the softmax a patch has weight 1: its value, projected, and the feed-forward layer remain.
    head = backbone.network.head
    value = functional.linear(
        out.last_hidden_state, head.attention.in_proj_weight[-tiny.SIZE :], head.attention.in_proj_bias[-tiny.SIZE :]
    )
    own = head.attention.out_proj(value)
    expected = own + head.mlp(head.layernorm(own))
    torch.testing.assert_close(seen.patches.flatten(1, 2), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_both_forms_of_siglip_see_the_same_with_the_same_weights() -> None:
    fixed, flexible = tiny.siglip(), tiny.naflex()
    weights = fixed.state_dict()
    by_colour = weights["embeddings.patch_embedding.weight"]
    weights["embeddings.patch_embedding.weight"] = by_colour.permute(0, 2, 3, 1).flatten(1)
    flexible.load_state_dict(weights)
    one, other = SiglipBackbone(fixed, SIGLIP), SiglipBackbone(flexible, SIGLIP)
    assert (one.native_px, one.patch_px) == (other.native_px, other.patch_px)
    torch.testing.assert_close(other.see(photos()).patches, one.see(photos()).patches, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(other.see(photos()).whole, one.see(photos()).whole, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_head_block_attends_as_torchs_own_multihead_attention() -> None:
    attention = tiny.dinotxt_head().block_list[0].attn
    reference = nn.MultiheadAttention(tiny.SIZE, tiny.HEADS, batch_first=True)
    reference.in_proj_weight.copy_(attention.qkv.weight)
    reference.in_proj_bias.zero_()
    reference.out_proj.load_state_dict(attention.proj.state_dict())
    tokens = torch.randn(2, 5, tiny.SIZE, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(attention(tokens), reference(tokens, tokens, tokens)[0], atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_the_head_is_two_residual_blocks_a_norm_and_a_projection() -> None:
    head = tiny.dinotxt_head()
    tokens = torch.randn(2, 5, tiny.SIZE, generator=torch.Generator().manual_seed(0))
    state = tokens
    for block in head.block_list:
        state = state + block.attn(block.norm1(state)) * block.ls1.gamma
        normed = block.norm2(state)
        gated = functional.silu(block.mlp.w1(normed)) * block.mlp.w2(normed)
        state = state + block.mlp.w3(gated) * block.ls2.gamma
    expected = head.ln_final(state) @ head.linear_projection.weight.T
    torch.testing.assert_close(head(tokens), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("out", [6, None])
@torch.no_grad()
def test_dinotxt_takes_all_tokens_through_its_head_and_keeps_the_patches(out: int | None) -> None:
    dino, head = DinoBackbone(tiny.dinov2_with_registers(), IMAGENET), tiny.dinotxt_head(out)
    backbone = DinoTxtBackbone(dino, head)
    expected = head(dino.network(pixel_values=photos()).last_hidden_state)[:, 3:]
    seen = backbone.see(photos())
    assert backbone.size == (out or tiny.SIZE)
    torch.testing.assert_close(seen.patches.flatten(1, 2), expected)
    torch.testing.assert_close(seen.whole, expected.mean(dim=1))


def test_a_heads_shape_is_read_off_its_tensors() -> None:
    assert HeadConfig.of(tiny.dinotxt_head().state_dict(), tiny.HEADS) == HeadConfig(tiny.SIZE, tiny.HEADS, 2, 24, 6)
    assert HeadConfig.of(tiny.dinotxt_head(None).state_dict(), tiny.HEADS).out is None


def test_a_head_for_another_backbone_is_refused() -> None:
    head = DinoTxtHead(HeadConfig(size=8, heads=2, blocks=1, hidden=8))
    with pytest.raises(InvalidValue, match="takes 8 numbers per token, the backbone gives 16"):
        DinoTxtBackbone(DinoBackbone(tiny.dinov2(), IMAGENET), head)


def test_the_released_heads_have_the_names_and_shapes_that_load() -> None:
    # ViT-L/14: 1024 numbers, 16 heads; the gated layers keep two thirds of 4096, made a multiple of 64.
    with torch.device("meta"):
        head = DinoTxtHead(HeadConfig(size=1024, heads=16, blocks=2, hidden=2752))
    shapes = {name: tuple(tensor.shape) for name, tensor in head.state_dict().items()}
    assert len(shapes) == 2 * 15 + 2
    assert shapes["block_list.1.attn.qkv.weight"] == (3072, 1024)
    assert "block_list.1.attn.qkv.bias" not in shapes
    assert shapes["block_list.0.mlp.w3.weight"] == (1024, 2752)
    assert {"block_list.0.ls1.gamma", "block_list.0.norm2.bias", "ln_final.weight"} <= set(shapes)


@pytest.mark.parametrize("name", ["clip", "dinov2", "siglip2"])
def test_a_network_as_trained_is_not_interpolated_and_a_larger_input_is(
    checkpoints: dict[str, str], make_photo: MakePhoto, name: str
) -> None:
    source = checkpoints["siglip" if name == "siglip2" else name]
    at_16, at_32 = (open_hub_encoder(f"{name}:{source}", input_px=side).look(make_photo()) for side in (None, 32))
    assert at_16.frame.input_size == (16, 16)
    assert at_32.patches.shape[:2] == (8, 8)
