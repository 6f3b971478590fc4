"""Who takes part in a study or a collection: a code that was handed out, typed by its owner."""

from __future__ import annotations

import re
from pathlib import Path

from saywhere.core.errors import InvalidValue

DATABASE = "saywhere.sqlite"
"""The file in a folder where what people said is kept, or where it says where that is."""
MOST_SECONDS = 86_400.0
"""No answer takes longer than a day."""
_CODE = re.compile(r"[A-Z0-9][A-Z0-9_-]{0,39}")


def has_database(folder: Path) -> bool:
    """Whether something that people said is, or was, kept in a folder's database."""
    return (folder / DATABASE).exists()


def participant_code(typed: str) -> str:
    """A participant's code in the one form it is kept in: capitals, nothing around it."""
    code = typed.strip()
    if not code:
        raise InvalidValue("participant code", "is empty", "it is what the lab gave you, such as P07")
    # ASCII first: some other letters become plain ones as capitals, and two people one.
    if not code.isascii() or not _CODE.fullmatch(code.upper()):
        hint = "letters A–Z, digits, - and _, at most 40, beginning with a letter or digit"
        raise InvalidValue("participant code", "has characters that a code cannot have", hint)
    return code.upper()


def check_shown(what: str, text: str, most: int) -> None:
    """InvalidValue unless a text that participants see says something, and is not too long."""
    if not text.strip():
        raise InvalidValue(what, "is empty")
    if len(text) > most:
        raise InvalidValue(what, f"has {len(text):,} characters; at most {most:,} are shown")


def check_participant(code: str, seconds: float | None) -> None:
    """InvalidValue unless a kept line is by somebody who can be, and took a time that can be."""
    if not _CODE.fullmatch(code):
        raise InvalidValue("participant code", f"{code!r} is none")
    if seconds is not None and not 0 <= seconds <= MOST_SECONDS:
        raise InvalidValue("seconds", f"are {seconds:g}, not within a day")
