"""Multimodal models as baselines, against a small server that looks at what it is sent."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saywhere.build.llm import Chat, Endpoint
from saywhere.core import Box, BoxSet, InvalidValue, Mask, Patch, Point, Polygon, Region, Trace, WholeImage
from saywhere.reproduce.lmm import Cropping, VisualPrompting, bounds_xyxy, cropped, data_url, marked, shrunk
from tests.build.endpoint import Reply, served

GREEN = Image.new("RGB", (200, 100), (0, 255, 0))
TRACE = Trace.from_segments([[[0.1, 0.2, 0], [0.3, 0.2, 1]], [[0.7, 0.8, 2], [0.9, 0.8, 3], [1.4, 0.8, 4]]])
LEFT = np.zeros((10, 20))
LEFT[2:8, :10] = 1


def sent(question: dict[str, Any]) -> tuple[str, Image.Image]:
    text, image = question["messages"][0]["content"]
    kind, _, packed = image["image_url"]["url"].partition(",")
    assert kind == "data:image/jpeg;base64"
    return text["text"], Image.open(io.BytesIO(base64.b64decode(packed))).convert("RGB")


def red(image: Image.Image) -> np.ndarray:
    """(h, w) whether a pixel is red, JPEG's blur allowed for."""
    pixels = np.asarray(image).astype(int)
    found: np.ndarray = (pixels[..., 0] > 150) & (pixels[..., 1] < 110)
    return found


@pytest.mark.parametrize(
    ("region", "bounds"),
    [
        (WholeImage(), (0, 0, 1, 1)),
        (Box(-0.5, 0.2, 0.4, 0.6), (0, 0.2, 0.4, 0.6)),
        (BoxSet((Box(0.1, 0.1, 0.2, 0.2), Box(0.5, 0.6, 0.7, 0.9))), (0.1, 0.1, 0.7, 0.9)),
        (Point(0.3, 0.4), (0.3, 0.4, 0.3, 0.4)),
        (TRACE, (0.1, 0.2, 0.9, 0.8)),
        (Polygon([[0.1, 0.1], [0.6, 0.2], [0.3, 0.9]]), (0.1, 0.1, 0.6, 0.9)),
        (Mask(LEFT), (0, 0.2, 0.5, 0.8)),
    ],
)
def test_the_box_around_any_region(region: Region, bounds: tuple[float, ...]) -> None:
    assert bounds_xyxy(region) == pytest.approx(bounds)


@pytest.mark.parametrize(
    "region",
    [Box(1.1, 0, 1.2, 1), Point(2, 0.5), Trace([[1.5, 0.5, 0.0]]), Trace.from_segments([]), Patch(0, 0)],
)
def test_a_region_that_is_not_on_the_photo_is_a_clear_error(region: Region) -> None:
    with pytest.raises(InvalidValue):
        bounds_xyxy(region)
    with pytest.raises(InvalidValue):
        marked(GREEN, region)


@pytest.mark.parametrize(
    ("region", "on", "off"),
    [
        (Box(0.25, 0.2, 0.75, 0.8), (50, 50), (100, 50)),
        (BoxSet((Box(0.1, 0.1, 0.3, 0.9), Box(0.6, 0.1, 0.9, 0.9))), (120, 50), (90, 50)),
        (TRACE, (40, 20), (100, 50)),
        (Point(0.5, 0.5), (108, 50), (100, 50)),
        (Polygon([[0.25, 0.2], [0.75, 0.2], [0.75, 0.8], [0.25, 0.8]]), (100, 20), (100, 50)),
        (Mask(LEFT), (100, 50), (50, 50)),
    ],
)
def test_a_region_is_drawn_in_red_at_its_place(region: Region, on: tuple[int, int], off: tuple[int, int]) -> None:
    drawn = red(marked(GREEN, region))
    assert drawn[on[1] - 2 : on[1] + 3, on[0] - 2 : on[0] + 3].any()
    assert not drawn[off[1] - 2 : off[1] + 3, off[0] - 2 : off[0] + 3].any()
    assert not red(GREEN).any()  # the photo itself is left as it was


def test_between_two_strokes_nothing_is_drawn() -> None:
    drawn = red(marked(GREEN, TRACE))
    assert drawn[78:83, 140:181].any()
    assert not drawn[30:70].any()


def test_a_crop_is_the_region_with_its_margin_inside_the_photo() -> None:
    assert cropped(GREEN, Box(0.25, 0.2, 0.75, 0.8), margin=0.0, min_side=0.1).size == (100, 60)
    assert cropped(GREEN, Box(0.25, 0.2, 0.75, 0.8), margin=0.1, min_side=0.1).size == (120, 72)
    assert cropped(GREEN, Box(0, 0, 1, 1), margin=0.5, min_side=0.1).size == (200, 100)
    assert cropped(GREEN, Point(0, 0), margin=0.0, min_side=0.2).size == (40, 20)
    assert cropped(Image.new("RGB", (1, 1)), Point(0.99, 0.99), margin=0.0, min_side=0.01).size == (1, 1)


def test_a_crop_near_the_edge_moves_inward() -> None:
    photo = GREEN.copy()
    photo.paste((255, 0, 0), (180, 0, 200, 20))
    corner = cropped(photo, Point(1.0, 0.0), margin=0.0, min_side=0.1)
    assert corner.size == (20, 10)
    assert red(corner).all()


def test_visual_prompting_asks_about_what_is_marked_once_for_each_region() -> None:
    with served(lambda question, number: Reply('"A dog."\nIt is nice.')) as server:
        captioner = VisualPrompting(Chat(Endpoint(server.url, "eyes")), lambda image_id: GREEN, workers=1)
        regions = [Box(0.25, 0.2, 0.75, 0.8), TRACE, WholeImage()]
        assert captioner.captions("7", regions) == ["A dog", "A dog", "A dog"]
    (box_text, box_photo), (trace_text, trace_photo), (whole_text, whole_photo) = map(sent, server.asked)
    assert "inside the box in red" in box_text
    assert "under the line in red" in trace_text
    assert "red" not in whole_text
    assert box_photo.size == trace_photo.size == (200, 100)
    assert red(box_photo)[50, 48:53].any()
    assert red(trace_photo)[20, 40]
    assert not red(whole_photo).any()


def test_cropping_sends_only_the_region() -> None:
    photo = GREEN.copy()
    photo.paste((255, 0, 0), (100, 0, 200, 100))
    with served(lambda question, number: Reply("red" if red(sent(question)[1]).mean() > 0.5 else "green")) as server:
        captioner = Cropping(Chat(Endpoint(server.url, "eyes")), lambda image_id: photo, margin=0.0, max_side_px=50)
        answers = captioner.captions("7", [Box(0.6, 0.1, 0.9, 0.9), Box(0, 0, 0.4, 1), Point(0.9, 0.5)])
    assert answers == ["red", "green", "red"]
    assert max(max(sent(question)[1].size) for question in server.asked) <= 50
    assert all("red" not in sent(question)[0] for question in server.asked)


def test_large_photos_are_shrunk_and_small_ones_left() -> None:
    assert shrunk(Image.new("RGB", (3000, 10)), 300).size == (300, 1)
    assert shrunk(GREEN, 200) is GREEN


def test_a_photo_in_an_address_can_be_opened_again() -> None:
    _, _, packed = data_url(GREEN).partition(",")
    assert Image.open(io.BytesIO(base64.b64decode(packed))).size == GREEN.size


def test_a_margin_below_zero_is_refused() -> None:
    with pytest.raises(InvalidValue, match="margin"):
        Cropping(Chat(Endpoint("http://127.0.0.1:1/v1", "eyes")), lambda image_id: GREEN, margin=-0.1)
