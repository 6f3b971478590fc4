"""What bounds captions from both sides: one that sees nothing, and one that a person wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from saywhere.metrics import caption_scores

BLIND, CEILING = "blind", "ceiling"


def caption_bounds(blind: str, told: Mapping[str, Sequence[str]]) -> dict[str, tuple[dict[str, str], dict[str, float]]]:
    """`BLIND` and `CEILING` → what is said of each item, and its scores; nothing if no item has two references.

    blind: the same text for all. told: item → what people said of it. Scores are against all references but the first,
    which is the ceiling's caption.

    >>> found = caption_bounds("a cup", {"1": ["a red cup", "one red cup"], "2": ["the sea", "waves at sea"]})
    >>> found["ceiling"][1]["CIDEr"] > found["blind"][1]["CIDEr"]
    True
    """
    others = {item: list(texts[1:]) for item, texts in told.items() if len(texts) > 1}
    if not others:
        return {}
    said = {BLIND: dict.fromkeys(others, blind), CEILING: {item: told[item][0] for item in others}}
    return {
        name: (texts, dict(caption_scores(texts, others, ["bleu", "rouge_l", "cider"])["corpus"]))
        for name, texts in said.items()
    }
