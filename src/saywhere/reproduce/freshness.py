"""Whether a report that is kept still fits the code: it says so itself, or a test fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from saywhere.reproduce._cells import about_older
from saywhere.reproduce._markdown import markdown
from saywhere.reproduce.code_hash import changed_files
from saywhere.reproduce.report import PAGE, render
from saywhere.reproduce.results import NUMBERS, load_report, save_report

_NAMED = 5
NO_HASH = "It was made before reports carried the hash of their code."


def kept_reports(folder: Path) -> list[Path]:
    """The folders of reports in a folder, or the folder itself if it is one."""
    return sorted(path.parent for path in [folder / NUMBERS, *folder.glob(f"*/{NUMBERS}")] if path.exists())


def problems(folder: Path) -> Iterator[str]:
    """Why a report must be remade, marked or rendered anew; nothing if it is as it should be."""
    report = load_report(folder)
    if not report.older and (reason := _why_older(report.code)):
        yield f"{reason} Run the experiment again, or mark the report with `saywhere reproduce check --mark`."
    elif not (folder / "report.md").is_file() or (folder / "report.md").read_text(encoding="utf-8") != markdown(report):
        yield f"report.md is not what {NUMBERS} says. Write it anew with `saywhere reproduce render`."


def mark_older(folder: Path, note: str = "") -> str:
    """Let the report say that older code made it, if so, and return what it says. note: what is known to be wrong.

    A mark stays until the report is remade.
    """
    report = load_report(folder)
    reason = report.older or _why_older(report.code)
    if reason:
        report = replace(report, older=f"{reason} {note}".strip())
        save_report(report, folder)
        # A report that is kept has its text alone; the page is made where it is wanted.
        render(folder, with_page=(folder / PAGE).exists())
    return about_older(report)


def _why_older(code: dict[str, str]) -> str:
    if not code:
        return NO_HASH
    changed = changed_files(code)
    if not changed:
        return ""
    named = ", ".join(changed[:_NAMED]) + (f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else "")
    return f"Changed since: {named}."
