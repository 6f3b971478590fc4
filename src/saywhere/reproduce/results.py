"""What an experiment found, apart from how it was found and how it is shown.

`Results` holds pictures that are still to be drawn; `Report` is what remains of it in numbers.json, from which the text
of a report can be made anew at any time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile
from saywhere.core.narrative import Narrative
from saywhere.reproduce.claims import Claim
from saywhere.reproduce.tables import Table

if TYPE_CHECKING:
    from saywhere.plots.heats import HeatPanel

NUMBERS = "numbers.json"


@dataclass(frozen=True, slots=True)
class Sweep:
    """A measure as an amount changes. across: what the amount is, with its unit.

    series: row → for each amount (x, mean, low, high), the ends of a 95 % interval NaN where unknown. paper: (x, y) as
    the paper has it, on its own data. section: as of tables.
    """

    title: str
    across: str
    measure: str
    series: dict[str, list[tuple[float, float, float, float]]]
    paper: tuple[tuple[float, float], ...] = ()
    section: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A text beneath a picture. label: who says it, at which level, from what. confidence: 0 to 1, None if unknown.

    good: whether it is right (the scene it names is the true one, for instance), None if nobody can tell.
    """

    label: str
    text: str
    confidence: float | None = None
    good: bool | None = None


@dataclass(frozen=True, slots=True)
class Illustration:
    """A picture in a file beside the report, and what stands around it. kind: "figures", "examples", "levels", "heats".

    alt: what it shows, for those who cannot see it. marked, marked_words: the first of the title's words, split at
    spaces, that are explained, and how many they are. notes: what is said of the picture on the page alone. dark: the
    same on dark paper, if there is one.
    """

    kind: str
    picture: str
    alt: str
    title: str = ""
    marked: int | None = None
    caption: str = ""
    lines: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()
    section: str = ""
    dark: str = ""
    marked_words: int = 1

    @property
    def explained(self) -> range:
        """Which of the title's words are explained."""
        return range(0) if self.marked is None else range(self.marked, self.marked + self.marked_words)


@dataclass(frozen=True, slots=True)
class Departure:
    """A setting that is not the paper's. here, paper: what it is, for people."""

    setting: str
    here: str
    paper: str


@dataclass(frozen=True)
class Report:
    """Everything a report says. settings: what was run, for people. curves: row → validation measure over steps.

    made_by: versions, hashes and fingerprints of what made it. paired: what both sides of a difference share.
    departures: what is not as in the paper. code: file of the package → hash of what it held when the report was made.
    older: what to know of a report that older code made; empty if the code that made it is today's.
    """

    title: str
    paper: str
    settings: dict[str, Any]
    made_by: dict[str, Any]
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]
    seeds: tuple[int, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    curves: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    paired: str = "Pairs have the same seed."
    illustrations: tuple[Illustration, ...] = ()
    departures: tuple[Departure, ...] = ()
    code: dict[str, str] = field(default_factory=dict)
    older: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A held-out image with what a person (or the simulated narrator) said and what models made of it.

    photo: a file beside the report. truth: the narrative. made: title → what a model predicted.
    """

    photo: str
    truth: Narrative
    made: dict[str, Narrative]


@dataclass(frozen=True, slots=True)
class HeatExample:
    """A held-out image with where models, and people, looked.

    photo: a file beside the report. text: a question, or a caption. word: which of a caption's words, split at spaces,
    is the one explained. section: as of tables. answer: the true one to a question, which then is explained.
    """

    photo: str
    text: str
    panels: tuple[HeatPanel, ...]
    word: int | None = None
    section: str = ""
    answer: str = ""

    @property
    def heading(self) -> str:
        """A question and its true answer, or a caption."""
        return f"{self.text} {self.answer}".rstrip()

    @property
    def marked(self) -> range:
        """Which of the heading's words are explained."""
        first = len(self.text.split()) if self.answer else self.word
        return range(0) if first is None else range(first, first + max(1, len(self.answer.split())))


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot that is drawn already; `sheets.drawn` makes one. section: as of tables.

    png: on light paper; dark_png: the same on dark paper, None if there is none. alt: what it shows, for those who
    cannot see it. caption: how to read it.
    """

    title: str
    png: bytes
    alt: str
    caption: str = ""
    section: str = ""
    dark_png: bytes | None = None


@dataclass(frozen=True, slots=True)
class NamedBox:
    """A thing on a photo. box_xyxy: in fractions of its width and height."""

    name: str
    box_xyxy: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class LevelExample:
    """A photo with captions at several levels. photo: a file beside the report.

    heading: for instance the true scene. removed: the things taken away for some of the captions, outlined on the
    photo. section: as of tables.
    """

    photo: str
    heading: str
    lines: tuple[Line, ...]
    removed: tuple[NamedBox, ...] = ()
    section: str = ""


@dataclass(frozen=True)
class Results(Report):
    """A report whose pictures are still to be drawn."""

    examples: tuple[Example, ...] = ()
    heats: tuple[HeatExample, ...] = ()
    figures: tuple[Figure, ...] = ()
    levels: tuple[LevelExample, ...] = ()

    def with_pictures(self, illustrations: tuple[Illustration, ...]) -> Report:
        """The report once they are drawn."""
        said = {one.name: getattr(self, one.name) for one in fields(Report)}
        return Report(**{**said, "illustrations": illustrations})


def save_report(report: Report, folder: Path) -> None:
    """As folder/numbers.json, for `load_report`."""
    with write_atomic(folder / NUMBERS) as file:
        file.write(msgspec.json.format(msgspec.json.encode(report)))


def load_report(folder: Path) -> Report:
    """What a run left in folder/numbers.json."""
    path = folder / NUMBERS
    try:
        raw = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        for part in ("tables", "sweeps", "curves"):
            raw[part] = _with_nan(raw.get(part, ()))
        raw["claims"] = [
            {**claim, **{name: _with_nan(claim[name]) for name in ("differences", "low", "high")}}
            for claim in raw.get("claims", ())
        ]
        return msgspec.convert(raw, Report)
    except (OSError, msgspec.MsgspecError, KeyError, TypeError) as error:
        raise InvalidFile(path, f"holds no report: {error}", "name the folder of an experiment that ended") from error


def _with_nan(value: Any) -> Any:
    """Numbers that are none became null, as JSON has neither NaN nor infinity."""
    if isinstance(value, dict):
        return {name: _with_nan(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_nan(inner) for inner in value]
    return math.nan if value is None else value
