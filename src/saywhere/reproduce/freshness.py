"""Whether a report that is kept still fits the code: it does, or may be older and says so itself, or a test fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec

from saywhere.core.errors import InvalidFile
from saywhere.formats.files import read_bytes
from saywhere.reproduce._markdown import markdown
from saywhere.reproduce.code_hash import changed_files
from saywhere.reproduce.report import PAGE, render
from saywhere.reproduce.results import NUMBERS, load_report, save_report

OLDER = "older.json"
"""Beside the folders of reports: those that older code may have made → what is known to be wrong with them. The one
place where this is allowed."""
_NAMED = 5
NO_HASH = "It was made before reports carried the hash of their code."


def kept_reports(folder: Path) -> list[Path]:
    """The folders of reports in a folder, or the folder itself if it is one."""
    return sorted(path.parent for path in [folder / NUMBERS, *folder.glob(f"*/{NUMBERS}")] if path.exists())


def problems(folder: Path) -> Iterator[str]:
    """Why a report must be remade, marked or rendered anew; nothing if it is as it should be, or may be older."""
    report, allowed = load_report(folder), _allowed(folder)
    reason = _why_older(report.code)
    if reason and not allowed:
        yield f"{reason} Run the experiment again, or say in {OLDER} beside it what is known to be wrong with it."
    elif allowed and not reason:
        yield f"{OLDER} names it, but its code is as it was. Take it out there."
    elif report.older != allowed:
        yield f"It does not say what {OLDER} says of it. Mark it with `saywhere reproduce check --mark`."
    elif not (folder / "report.md").is_file() or (folder / "report.md").read_text(encoding="utf-8") != markdown(report):
        yield f"report.md is not what {NUMBERS} says. Write it anew with `saywhere reproduce render`."


def why_older(folder: Path) -> str:
    """What of a report's code has changed since it was made, as of today; empty if nothing has."""
    return _why_older(load_report(folder).code)


def mark_older(folder: Path) -> None:
    """Let a report say that older code made it, with what is known to be wrong, if that is so and allowed; else not."""
    report = load_report(folder)
    older = _allowed(folder) if _why_older(report.code) else ""
    if report.older != older:
        save_report(replace(report, older=older), folder)
        # A report that is kept has its text alone; the page is made where it is wanted.
        render(folder, with_page=(folder / PAGE).exists())


def _allowed(folder: Path) -> str:
    """What is known to be wrong with a report that may be older; empty if it may not."""
    path = folder.resolve().parent / OLDER
    if not path.is_file():
        return ""
    try:
        known = msgspec.json.decode(read_bytes(path), type=dict[str, Annotated[str, msgspec.Meta(min_length=1)]])
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"does not say what is known of reports: {error}", "name → what is wrong") from error
    return known.get(folder.resolve().name, "")


def _why_older(code: dict[str, str]) -> str:
    if not code:
        return NO_HASH
    changed = changed_files(code)
    if not changed:
        return ""
    named = ", ".join(changed[:_NAMED]) + (f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else "")
    return f"Changed since: {named}."
