"""The review sheet: examples on one page that needs nothing else, judged by people, and their decisions read back.

Decisions are a JSON list of {"id", "digest", "decision": "accept", "reject" or "edit", "texts": [a text for each
turn]}; texts are there for edits alone. The digest is of what the person saw: a decision counts for that alone. All
text on the page is escaped, and a policy in it forbids whatever is not in it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal

import msgspec
import numpy as np

from saywhere.atomic import write_atomic
from saywhere.build.riln.example import DialogueTurn, RilnExample, Text, Thought, content_digest
from saywhere.core.errors import InvalidFile
from saywhere.core.trajectory import BINS
from saywhere.formats.files import read_bytes
from saywhere.plots.photo import load_photo
from saywhere.plots.text import digest, safe, shortened

REJECTED = "review: rejected by a person"
MISFIT = "review: an edit with another number of turns"
_LONGEST_PX = 640
_WIDTH = 1000


class ReviewDecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person decided about one example. digest: of its content, as the person saw it. texts: of all turns, for
    an edit."""

    id: Text
    digest: Text
    decision: Literal["accept", "reject", "edit"]
    texts: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if (self.decision == "edit") != bool(self.texts):
            raise ValueError("texts belong to an edit, and an edit needs them")


def read_review(path: str | Path) -> dict[str, ReviewDecision]:
    """Decisions by example; the last one counts where an example has several."""
    try:
        decisions = msgspec.json.decode(read_bytes(path), type=list[ReviewDecision])
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"is not the decisions of a review: {error}", "export them from review.html") from error
    return {one.id: one for one in decisions}


def reviewed(example: RilnExample, decision: ReviewDecision) -> tuple[RilnExample, str]:
    """The example as it was decided, and why it is dropped, if it is."""
    if decision.decision == "accept":
        return example, ""
    if decision.decision == "reject":
        return example, REJECTED
    if len(decision.texts) != len(example.turns):
        return example, MISFIT
    both = zip(example.turns, decision.texts, strict=True)
    turns = tuple(DialogueTurn(turn.role, text) for turn, text in both)
    return msgspec.structs.replace(example, turns=turns), ""


def no_photo(image_id: str) -> Path | None:  # noqa: ARG001 - of no image
    """For those who have no photos."""
    return None


def sampled(examples: Iterable[RilnExample], count: int, seed: int) -> list[RilnExample]:
    """Some of the examples by chance, in their order, without ever holding more than that."""
    rng = np.random.default_rng(seed)
    kept: list[tuple[int, RilnExample]] = []
    for number, example in enumerate(examples):
        if len(kept) < count:
            kept.append((number, example))
        elif (at := int(rng.integers(number + 1))) < count:
            kept[at] = (number, example)
    return [example for _, example in sorted(kept, key=lambda both: both[0])]


def write_review_sheet(
    examples: Sequence[RilnExample], path: str | Path, photo: Callable[[str], Path | None] = no_photo
) -> None:
    """Write the page, whole or not at all. The same examples and photos give the same bytes."""
    with write_atomic(path) as file:
        file.write(review_html(examples, photo).encode("utf-8"))


def review_html(examples: Sequence[RilnExample], photo: Callable[[str], Path | None] = no_photo) -> str:
    """The page as text."""
    style, script = _asset("review.css"), _asset("review.js")
    policy = f"default-src 'none'; img-src data:; style-src {digest(style)}; script-src {digest(script)}"
    pictures = {image: _picture(photo(image)) for image in dict.fromkeys(example.image for example in examples)}
    stored = [picture for picture, _ in pictures.values() if picture]
    names = {picture: f"photo-{i}" for i, picture in enumerate(dict.fromkeys(stored))}
    images = [
        f'<image id="{name}" width="{_WIDTH}" height="{height:.0f}" preserveAspectRatio="none" href="{picture}"/>'
        for picture, height in dict.fromkeys(both for both in pictures.values() if both[0])
        for name in [names[picture]]
    ]
    shown = [
        _article(example, names.get(pictures[example.image][0], ""), pictures[example.image][1]) for example in examples
    ]
    return Template(_asset("review.html")).substitute(
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        photos="\n".join(images),
        count=len(examples),
        articles="\n".join(shown),
    )


def _picture(path: Path | None) -> tuple[str, float]:
    """A photo as an address that holds it, empty if there is none, and its height on the page."""
    photo = load_photo(path)
    width, height = photo.size
    if photo.image is None:
        return "", _WIDTH * height / width
    jpeg = base64.b64encode(photo.shrunk(_LONGEST_PX).jpeg()).decode()
    return f"data:image/jpeg;base64,{jpeg}", _WIDTH * height / width


def _article(example: RilnExample, photo: str, height: float) -> str:
    what = f"{example.level} · {example.kind}" if example.level else f"dialogue of {len(example.turns)} turns"
    turns = "".join(_turn(i, turn) for i, turn in enumerate(example.turns))
    tree = f"<details><summary>reasoning</summary><ul>{_thought(example.reasoning)}</ul></details>"
    choices = "".join(
        f'<button type="button" data-decision="{value}" aria-pressed="false">{label}</button>'
        for value, label in (("accept", "Accept"), ("reject", "Reject"))
    )
    said = " ".join(phrase.text for phrase in example.phrases)
    named = f'data-id="{safe(example.id)}" data-digest="{content_digest(example)}"'
    return f"""<article {named} tabindex="-1" aria-label="{safe(example.id)}">
<header><h2>{safe(what)}</h2><p>{safe(example.id)} · {safe(example.generator)}</p></header>
{_drawing(example, photo, height)}
<div class="talk">{turns}
{tree if example.reasoning else ""}<p class="said">said there: {safe(shortened(said, 300))}</p>
<p class="choices">{choices}<span class="state" role="status"></span></p></div>
</article>"""


def _turn(number: int, turn: DialogueTurn) -> str:
    lines = 1 + len(turn.text) // 80
    field = f'<textarea rows="{min(8, lines)}" aria-label="turn {number + 1}">{_escaped(turn.text)}</textarea>'
    return f'<label class="{turn.role}"><span>{turn.role}</span>{field}</label>'


def _thought(thought: Thought | None) -> str:
    if thought is None:
        return ""
    below = "".join(map(_thought, thought.because))
    return f"<li>{safe(thought.claim)}{f'<ul>{below}</ul>' if below else ''}</li>"


def _drawing(example: RilnExample, photo: str, height: float) -> str:
    points = [((x + 0.5) / BINS * _WIDTH, (y + 0.5) / BINS * height) for x, y, _ in example.trajectory]
    steps = "L".join(f"{x:.0f} {y:.0f}" for x, y in (points if len(points) > 1 else points * 2))
    under = f'<use href="#{photo}"/>' if photo else f'<rect class="canvas" width="{_WIDTH}" height="{height:.0f}"/>'
    dots = "".join(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="6"/>' for x, y in points)
    first = f'<circle class="first" cx="{points[0][0]:.0f}" cy="{points[0][1]:.0f}" r="13"/>'
    path = f'<path class="halo" d="M{steps}"/><path class="path" d="M{steps}"/>'
    label = f"image {safe(example.image)} with the path of {len(points)} points"
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{label}">{under}{path}{dots}{first}</svg>'


def _escaped(text: str) -> str:
    """A turn inside a text field keeps its line breaks."""
    return "\n".join(safe(line) for line in text.split("\n"))


def _asset(name: str) -> str:
    return files("saywhere.build.riln").joinpath(name).read_text(encoding="utf-8")
