"""A nucleus is the same whether the whole vocabulary was sorted or only its likeliest tokens."""

from __future__ import annotations

import pytest
import torch

from saywhere.models.search import _FEW, _ranked


@pytest.mark.parametrize("sharpness", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("top_p", [0.3, 0.9, 1.0])
def test_the_likeliest_tokens_are_those_of_a_whole_sort(sharpness: float, top_p: float) -> None:
    """sharpness 0: all are equal, and of equals the first come first."""
    scores = sharpness * torch.randn(6, 4 * _FEW, generator=torch.Generator().manual_seed(0)).round(decimals=1)
    shares = scores.double().softmax(dim=-1)
    whole, every = shares.sort(dim=-1, descending=True, stable=True)
    ours, tokens = _ranked(shares, top_p)
    kept = (whole.cumsum(dim=-1) - whole < top_p).sum(dim=-1)
    assert int(kept.max()) <= ours.shape[1]
    for row, count in enumerate(kept.tolist()):
        assert torch.equal(tokens[row, :count], every[row, :count])
        assert torch.equal(ours[row, :count], whole[row, :count])


def test_a_sharp_nucleus_needs_no_whole_sort() -> None:
    scores = 3.0 * torch.randn(6, 40 * _FEW, generator=torch.Generator().manual_seed(0))
    assert _ranked((2 * scores).double().softmax(dim=-1), 0.5)[0].shape[1] == _FEW
