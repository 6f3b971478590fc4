"""Which licences the pinned packages are under: python -m tests.licences. Exit code 1 if one is not known to be free to
use beside Apache-2.0, or a package says nothing of it."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PINS = Path(__file__).resolve().parents[1] / "constraints.txt"
_FREE = re.compile(
    r"\b(?:MIT|(Free)?BSD|Apache|PSF|Python Software Foundation|MPL|Mozilla|ISC|HPND|CC0|0BSD|Unlicense|Zlib|LGPL"
    r"|CNRI|OpenLDAP|OLDAP|Boost|Historical Permission|Artistic)",
    re.IGNORECASE,
)
_NOTHING = ("OSI Approved", "UNKNOWN")
# Says nothing in its package; it comes with an extra and with the tests, never by itself.
SILENT = ("pycocoevalcap",)


def pinned() -> list[str]:
    """The names in constraints.txt."""
    lines = (line.partition("#")[0].strip() for line in PINS.read_text(encoding="utf-8").splitlines())
    return [re.split(r"[=<>\[; ]", line)[0] for line in lines if line and not line.startswith("-")]


def licence(name: str) -> str | None:
    """What an installed package says of its licence; empty if nothing, None if it is not installed."""
    try:
        facts = distribution(name).metadata
    except PackageNotFoundError:
        return None
    classifiers = [one for one in facts.get_all("Classifier") or [] if one.startswith("License ::")]
    said = [facts.get("License-Expression"), *(one.rpartition(":: ")[2] for one in classifiers), facts.get("License")]
    first = next((one for one in said if one and one.strip() and one not in _NOTHING), "") or _in_file(name)
    return first.strip().splitlines()[0] if first else ""


def _in_file(name: str) -> str:
    """The beginning of the licence that lies beside a package."""
    files = [one for one in distribution(name).files or [] if "licen" in one.name.lower()]
    return files[0].read_text() if files else ""


def is_free(said: str) -> bool:
    return _FREE.search(said) is not None


def main() -> int:
    found = {name: licence(name) for name in pinned()}
    wrong = [name for name, said in found.items() if said is not None and not is_free(said) and name not in SILENT]
    for name, said in found.items():
        sys.stdout.write(f"{name:32} {'not installed' if said is None else said[:80] or 'says nothing'}\n")
    sys.stdout.write(f"{len(found)} packages, {len(wrong)} to look at: {', '.join(wrong) or 'none'}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
