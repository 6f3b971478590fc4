"""The eye that comes with the package: its files fit each other and its card is there."""

from __future__ import annotations

import torch

from saywhere.models.eye.encoder import SHIPPED, EyeLearner, namer_of


def test_the_shipped_eye_opens_and_knows_its_names_and_words() -> None:
    eye = EyeLearner.from_pretrained(SHIPPED)
    assert len(eye.names) == 80
    assert {"red", "grass", "kitchen"} <= set(eye.words)
    assert namer_of(eye).sharpness > 1


def test_what_the_shipped_eye_sees_is_finite_and_differs_from_place_to_place() -> None:
    eye = EyeLearner.from_pretrained(SHIPPED)
    config = eye.eye.config
    trunk_states = torch.randn(1, 1 + config.grid**2, config.trunk_size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        seen = eye(trunk_states)
    assert all(torch.isfinite(one).all() for one in seen)
    assert seen.cells[0, :, 0].std(dim=0).mean() > 1e-3


def test_the_card_stands_beside_the_weights() -> None:
    card = (SHIPPED.parent / "README.md").read_text(encoding="utf-8")
    assert all(word in card for word in ("`eye/`", "38,757", "seed 0", "keep_out.txt", "## Limits"))
