"""Photos that are passed over in the queue, and why: one file, written whole at every change."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue

LONGEST_REASON = 200


class SkipStore:
    """The reason for every photo that is skipped. Threads may share it: one changes it at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._changing = threading.Lock()
        self._reasons = self._read()

    def reasons(self) -> dict[str, str]:
        """Photo id → why it is skipped."""
        return dict(self._reasons)

    def skip(self, photo: str, reason: str) -> None:
        """Pass over a photo, or change the reason. InvalidValue without a reason."""
        told = reason.strip()
        if not told or len(told) > LONGEST_REASON:
            raise InvalidValue("the reason", f"must have 1 to {LONGEST_REASON} characters", "say why it is skipped")
        with self._changing:
            self._write(self._reasons | {photo: told})

    def forget(self, photo: str) -> None:
        """Take a photo back into the queue; nothing happens if it was not skipped."""
        with self._changing:
            if photo in self._reasons:
                self._write({one: why for one, why in self._reasons.items() if one != photo})

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise InvalidFile(self.path, f"cannot be read: {error.strerror or error}") from error
        except msgspec.DecodeError as error:
            raise InvalidFile(self.path, f"is damaged: {error}", "mend it, or move it away to skip nothing") from error

    def _write(self, reasons: dict[str, str]) -> None:
        try:
            data = msgspec.json.encode(reasons)
        except UnicodeEncodeError as error:
            raise InvalidValue("the reason", "holds half a character (a lone surrogate)") from error
        with write_atomic(self.path) as file:
            file.write(data)
        self._reasons = reasons
