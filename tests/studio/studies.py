"""Studies for tests: small photos, and maps that say whose they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.studio.study import StudyItem, write_study

from .conftest import picture

MODELS = {"a": "plain", "b": "hinted"}
A_MAP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
B_MAP = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
"""Model a looks at the top left corner alone, model b at the bottom right one."""


def item(number: int = 0, **changes: Any) -> StudyItem:
    """A caption with a word for even numbers, a question with an answer for odd ones."""
    said = {"word": "wall"} if number % 2 == 0 else {"answer": "blue"}
    prompt = "a red wall beside a blue one" if number % 2 == 0 else "What colour is the right one?"
    values = {"id": f"q{number}", "photo": picture(64 + number, 48), "prompt": prompt, **said}
    return StudyItem(**{**values, "maps": {"a": A_MAP, "b": B_MAP}, **changes})


def make_study(folder: Path, items: int = 4, title: str = "Where do they look?") -> Path:
    write_study(folder, title, MODELS, [item(i) for i in range(items)])
    return folder


def change_study(folder: Path, **changes: Any) -> None:
    """Write study.json anew with something else in its first item; "title" and such are meant for the whole."""
    path = folder / "study.json"
    written = json.loads(path.read_text("utf-8"))
    for name, value in changes.items():
        (written["items"][0] if name in ("photo", "prompt", "word", "answer", "maps", "id") else written)[name] = value
    path.write_text(json.dumps(written), "utf-8")
