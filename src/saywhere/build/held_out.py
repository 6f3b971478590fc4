"""The COCO photos that nothing learns from."""

from __future__ import annotations

from importlib.resources import files


def held_out(which: str) -> frozenset[str]:
    """Names of the COCO photos that nothing learns from: "test" (500) or "validation" (250)."""
    return frozenset((files("saywhere.build") / f"{which}_photos.txt").read_text(encoding="utf-8").split())
