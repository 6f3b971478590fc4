"""Learning rates against values computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.learn.schedule import Constant, Cosine, Linear, Schedule, StepDecay, lr_factor


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        (Constant(), {0: 1, 9: 1}),
        (Constant(warmup_steps=4), {0: 0.25, 1: 0.5, 2: 0.75, 3: 1, 4: 1}),
        # Two steps an epoch: epochs 0-2, 3-5, 6-8 are steps 0-5, 6-11, 12-17.
        (StepDecay(every_epochs=3, factor=0.8), {0: 1, 5: 1, 6: 0.8, 11: 0.8, 12: 0.64, 17: 0.64}),
        (StepDecay(every_epochs=1, factor=0.5, warmup_steps=2), {0: 0.5, 1: 1, 2: 0.5, 4: 0.25}),
        (Cosine(), {0: 1, 5: 0.8535533905932737, 10: 0.5, 15: 0.14644660940672627, 20: 0}),
        (Cosine(floor=0.1, warmup_steps=10), {0: 0.1, 9: 1, 10: 1, 15: 0.55, 20: 0.1}),
        (Linear(), {0: 1, 5: 0.75, 10: 0.5, 20: 0}),
        (Linear(floor=0.5, warmup_steps=10), {4: 0.5, 10: 1, 15: 0.75, 20: 0.5, 30: 0.5}),
    ],
)
def test_rates_are_those_computed_by_hand(schedule: Schedule, factors: dict[int, float]) -> None:
    for step, factor in factors.items():
        assert lr_factor(schedule, step, total_steps=20, steps_per_epoch=2) == pytest.approx(factor, abs=1e-15)


@given(
    schedule=st.sampled_from([Constant, Cosine, Linear]),
    warmup=st.integers(0, 30),
    total=st.integers(1, 40),
    step=st.integers(0, 39),
)
def test_a_rate_is_never_negative_nor_above_the_base(
    schedule: type[Constant | Cosine | Linear], warmup: int, total: int, step: int
) -> None:
    assert 0 <= lr_factor(schedule(warmup_steps=warmup), step, total, steps_per_epoch=3) <= 1
