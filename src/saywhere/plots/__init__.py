"""Pictures: traces, word boxes, narratives and attention over their photos, as figures, PNG or one page."""

from saywhere.plots.colour import TimeScale
from saywhere.plots.heatmap import draw_heatmap
from saywhere.plots.narrative import draw_narrative
from saywhere.plots.page import narratives_page
from saywhere.plots.photo import Photo, PhotoLike, load_photo
from saywhere.plots.sheet import save_png
from saywhere.plots.summary import draw_summary
from saywhere.plots.trace import add_trace, draw_trace
from saywhere.plots.words import add_word_boxes, draw_word_boxes

__all__ = [
    "Photo",
    "PhotoLike",
    "TimeScale",
    "add_trace",
    "add_word_boxes",
    "draw_heatmap",
    "draw_narrative",
    "draw_summary",
    "draw_trace",
    "draw_word_boxes",
    "load_photo",
    "narratives_page",
    "save_png",
]
