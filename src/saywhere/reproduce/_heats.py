"""Heat maps of a report: the photo, then where each model and people looked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from saywhere.plots.heats import PHOTO_TITLE, HeatPanel, draw_heats, draw_panel, heading_words
from saywhere.plots.photo import Photo, load_photo
from saywhere.reproduce._examples import PANEL_IN, webp
from saywhere.reproduce.results import HeatExample

ABOUT = (
    "Each map lies over the photo in grey and is relative to its own highest value: "
    "no colour where nothing counted, yellow where most did."
)


@dataclass(frozen=True, slots=True)
class Picture:
    """One panel for the page. seen: what it shows, for those who cannot see it."""

    title: str
    seen: str
    note: str
    webp: bytes


@dataclass(frozen=True, slots=True)
class HeatScene:
    """An example ready to be drawn. words: of the heading, and whether each is the one explained."""

    path: Path | None
    example: HeatExample
    words: list[tuple[str, bool]]

    @classmethod
    def of(cls, example: HeatExample, folder: Path) -> HeatScene:
        """folder: where the report is, and the photo beside it."""
        path = folder / example.photo if example.photo else None
        return cls(path, example, heading_words(example.heading, example.marked))

    def draw(self) -> Figure:
        """All panels on one sheet."""
        return draw_heats(self.path, self.example.panels, self.example.heading, self.example.marked)

    def described(self) -> str:
        """What the sheet shows, for those who cannot see it."""
        return "; ".join(["The photo", *(panel.described() for panel in self.example.panels)])

    def pictures(self) -> list[Picture]:
        """The photo itself, and each panel."""
        photo = load_photo(self.path)
        first = Picture(PHOTO_TITLE, "The photo itself", "", webp(draw_panel(photo, None, PANEL_IN)))
        return [first, *(_picture(photo, panel) for panel in self.example.panels)]


def _picture(photo: Photo, panel: HeatPanel) -> Picture:
    return Picture(panel.title, panel.described(), panel.note, webp(draw_panel(photo, panel, PANEL_IN)))
