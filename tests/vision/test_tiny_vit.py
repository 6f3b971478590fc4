from __future__ import annotations

import pytest
import torch

from saywhere.core.errors import InvalidValue
from saywhere.vision.tiny_vit import TinyViT, TinyVitConfig, _WindowAttention
from tests.vision.small_sam import CONFIG, SIDE, encoder


def pixels(seed: int = 0, batch: int = 1) -> torch.Tensor:
    made = torch.randint(0, 256, (batch, SIDE, SIDE, 4), generator=torch.Generator().manual_seed(seed))
    made[..., 3] = 255
    return made.to(torch.uint8)


def test_a_cell_of_the_map_is_sixteen_pixels_and_photos_do_not_mix() -> None:
    network, photos = encoder(), pixels(batch=3)
    together = network(photos)
    assert together.shape == (3, CONFIG.out, SIDE // 16, SIDE // 16)
    torch.testing.assert_close(network(photos[1:2]), together[1:2], atol=1e-5, rtol=1e-4)


def test_folded_norms_change_nothing_but_the_speed() -> None:
    network, photo = encoder(), pixels()
    before = network(photo)
    network.fold()
    assert not [one for one in network.modules() if isinstance(one, torch.nn.BatchNorm2d)]
    torch.testing.assert_close(network(photo), before, atol=1e-5, rtol=1e-4)


def test_colours_beside_the_photo_are_not_seen() -> None:
    network, photo = encoder(), pixels()
    photo[:, 40:, :, 3] = 0
    other = photo.clone()
    other[:, 40:, :, :3] = 7
    assert torch.equal(network(photo), network(other))
    seen = other.clone()
    seen[..., 3] = 255
    assert not torch.allclose(network(seen), network(other))


def test_attention_stays_inside_its_window_and_knows_distances() -> None:
    attention = _WindowAttention(4, 2, 3)
    torch.nn.init.normal_(attention.attention_biases)
    # Of a window of 3 × 3: the bias of a pair is that of its two distances, rows first.
    assert attention.places[0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert attention.places[4].tolist() == [4, 3, 4, 1, 0, 1, 4, 3, 4]
    cells = torch.randn(1, 6, 5, 4, generator=torch.Generator().manual_seed(0))
    before = attention(cells)
    assert before.shape == cells.shape
    cells[0, 1, 4, 0] += 1  # in one channel: the norm does not see what is added to all
    changed = (attention(cells) - before).abs().sum(dim=-1)[0] > 0
    assert changed[:3, 3:].all()
    assert not changed[3:].any()
    assert not changed[:, :3].any()


def _released_name(name: str, network: TinyViT) -> str:
    """Convolutions with a norm are c and bn there; other norms have their names."""
    parent, layer, last = name.rpartition(".")[0].rpartition(".")[0], name.split(".")[-2], name.split(".")[-1]
    if f"{parent}.conv.weight" not in network.state_dict():
        return name
    return f"{parent}.{'c' if layer == 'conv' else 'bn'}.{last}"


def test_released_weights_are_taken_by_name_and_the_classifier_is_left() -> None:
    source, network = encoder(1), encoder(2)
    released = {_released_name(name, source): one for name, one in source.state_dict().items()}
    assert "patch_embed.seq.0.bn.running_var" in released
    network.load_released(released | {"head.weight": torch.zeros(2, 2), "norm_head.bias": torch.zeros(2)})
    photo = pixels()
    assert torch.equal(network(photo), source(photo))
    with pytest.raises(InvalidValue, match=r"1 tensors are missing or too many, first 'neck\.0\.weight'"):
        network.load_released({name: one for name, one in released.items() if name != "neck.0.weight"})
    with pytest.raises(InvalidValue, match=r"'neck\.0\.weight' has shape"):
        network.load_released(released | {"neck.0.weight": torch.zeros(1)})


@pytest.mark.parametrize(
    "sizes", [{"widths": (8, 8, 8)}, {"depths": (1, 1, 0, 1)}, {"heads": (1, 3, 1, 1), "widths": (8, 8, 8, 8)}]
)
def test_sizes_that_do_not_fit_are_refused(sizes: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(InvalidValue, match="TinyVitConfig"):
        TinyVitConfig(**sizes)  # type: ignore[arg-type]


def test_the_default_size_is_that_of_the_released_weights() -> None:
    with torch.device("meta"):
        network = TinyViT(TinyVitConfig())
    # The released encoder has 6,065,532; its classifier of 1000 classes, which is left out, has 321,640 of them.
    assert sum(one.numel() for one in network.parameters()) == 6_065_532 - 321_640
