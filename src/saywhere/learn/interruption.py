"""Ctrl-C and SIGTERM as a wish to stop, not as a sudden death."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_Handler = Callable[[int, FrameType | None], Any] | int | None


class Interruption:
    """Within the block the first signal only sets `signal_name`; a second one acts as it did before the block.

    Signals reach only the main thread: in another one this does nothing.
    """

    def __init__(self) -> None:
        self.signal_name = ""
        self._before: dict[signal.Signals, _Handler] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = {kind: signal.signal(kind, self._note) for kind in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._give_back()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.signal_name = signal.Signals(number).name
        self._give_back()

    def _give_back(self) -> None:
        for kind, handler in self._before.items():
            # None stands for a handler that was not installed from Python and cannot be given back.
            signal.signal(kind, signal.SIG_DFL if handler is None else handler)
        self._before = {}
