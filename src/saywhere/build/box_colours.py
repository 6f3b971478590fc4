"""The colours of things, as captions say them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from saywhere.build.box_drafts import Draft
from saywhere.build.region_texts import BoxXyxy
from saywhere.language.visual_words import visual_words_in, words_of

COLOURS = {
    **{name: name for name in ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black")},
    **{name: name for name in ("white", "gray", "silver", "gold", "tan", "beige")},
    **{"grey": "gray", "golden": "gold"},
}
"""Word of a caption → answer."""

# Of a person the word is no colour of a thing; "orange" is a fruit or a colour, "red wine glass" says the colour of the
# wine, and captions mean the tower when they speak of a clock.
_NO_COLOUR = frozenset(("person", "orange", "wine glass", "clock", "skis", "scissors", "broccoli", "hot dog"))
# Words that may stand between a colour and its thing: "a red double decker bus".
_BETWEEN = frozenset(("and", "small", "large", "big", "little", "old", "double", "decker", "wooden", "striped"))
_REACH = 3


def colours(clear: Mapping[str, tuple[BoxXyxy, ...]], captions: Sequence[str]) -> Iterator[Draft]:
    """ "What color is the bus?" of things that are there once, where all captions that say it say the same."""
    said: dict[str, list[str]] = {}
    for caption in captions:
        for name, colour in colours_in(caption):
            said.setdefault(name, []).append(colour)
    for name, all_said in sorted(said.items()):
        boxes = clear.get(name, ())
        if len(boxes) == 1 and len(set(all_said)) == 1:
            yield Draft(f"What color is the {name}?", "what color is the", all_said[0], boxes, (name,))


def colours_in(caption: str) -> list[tuple[str, str]]:
    """Classes of COCO with the colour that the caption gives them: "a red and white bus" → ("bus", "red and white")."""
    words = words_of(caption)
    if COLOURS.keys().isdisjoint(words):
        return []
    found = []
    last: tuple[int, str] = (-1, "")
    for start, end, name in visual_words_in(words):
        # "double decker" and "bus" are one thing.
        colour = "" if last == (start, name) else _before(words, start)
        if colour and name not in _NO_COLOUR:
            found.append((name, colour))
        last = end, name
    return found


def _before(words: Sequence[str], start: int) -> str:
    """The colours right before a word, in their order; empty if there is none."""
    at = start
    while at > 0 and start - at <= _REACH and (words[at - 1] in COLOURS or words[at - 1] in _BETWEEN):
        at -= 1
    return " and ".join(COLOURS[word] for word in words[at:start] if word in COLOURS)
