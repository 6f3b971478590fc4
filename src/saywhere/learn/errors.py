"""What can go wrong while learning, beyond bad input."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from saywhere.core.errors import SaywhereError


class TrainingDiverged(SaywhereError, ArithmeticError):
    """The loss or its gradient is no longer a number. The weights are those of before the step.

    step: which step would have been next to finish, from 1. losses: every term the task returned.
    kept: the checkpoint that holds the last good state, if there is one.
    """

    def __init__(
        self, step: int, reason: str, losses: Mapping[str, float], grad_norm: float | None, kept: Path | None = None
    ) -> None:
        self.step, self.reason, self.losses, self.grad_norm, self.kept = step, reason, dict(losses), grad_norm, kept
        terms = ", ".join(f"{name} = {value:g}" for name, value in self.losses.items())
        state = f"the last good state is in {kept}" if kept else "no good state was saved yet"
        super().__init__(
            f"step {step}: {reason} ({terms}); {state}. "
            "A lower train.lr, a warm-up, or train.clip_norm often helps; train.init_from starts from a saved state."
        )

    def keeping(self, kept: Path | None) -> TrainingDiverged:
        """The same error, saying where the last good state is."""
        return TrainingDiverged(self.step, self.reason, self.losses, self.grad_norm, kept)
