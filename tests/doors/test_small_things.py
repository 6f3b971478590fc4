"""What a new user meets first: pixels for fractions, photos of phones, pictures that move, folders that are nowhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import save_file
from typer.testing import CliRunner

from saywhere.cli.app import app
from saywhere.cli.pointing import Pointing
from saywhere.cli.seeing import read_first
from saywhere.cli.summary import _median
from saywhere.core import Box, InvalidFile, InvalidValue, Trace, Utterance
from saywhere.core.alignment import located_words, word_boxes
from saywhere.core.words import split_words, word_times
from saywhere.models.mitr import MITR
from saywhere.vision import read_photo
from tests.models import small
from tests.models.patchioner_seeing import photo, seer

PHOTO = Path("photo.jpg")


@pytest.mark.parametrize(("option", "text"), [("box", "100,200,300,400"), ("point", "300,0.5"), ("polygon", "9,9;8,1")])
def test_numbers_that_can_only_be_pixels_are_told_how_to_say_so(option: str, text: str) -> None:
    given_as = {name: [text] if name == option else [] for name in ("box", "point", "polygon")}
    with pytest.raises(InvalidValue, match="--pixels"):
        Pointing(PHOTO).regions(given_as["box"], given_as["point"], given_as["polygon"], [])


@pytest.mark.parametrize("text", ["100,200,700,400", "-1,0,10,10", "0,0,10,481"])
def test_pixels_outside_the_photo_are_refused_with_its_size(text: str) -> None:
    with pytest.raises(InvalidValue, match="640 × 480"):
        Pointing(PHOTO, (640, 480)).regions([text], [], [], [])


def test_pixels_on_the_photo_and_traces_beyond_its_edge_are_taken() -> None:
    box, trace = Pointing(PHOTO, (640, 480)).regions(["0,0,640,480"], [], [], ["-20,10;660,100"])
    assert box == Box(0, 0, 1, 1)
    assert isinstance(trace, Trace)


@pytest.mark.parametrize("brand", [b"heic", b"mif1"])
@pytest.mark.parametrize("as_file", [True, False])
def test_a_phones_heic_gets_a_sentence_that_helps(brand: bytes, as_file: bool, tmp_path: Path) -> None:
    content = b"\0\0\0\x18ftyp" + brand + bytes(40)
    (tmp_path / "IMG_0001.HEIC").write_bytes(content)
    with pytest.raises((InvalidFile, InvalidValue), match=r"is HEIC.*save it as JPEG"):
        read_photo(tmp_path / "IMG_0001.HEIC" if as_file else content)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_a_picture_that_moves_says_which_frame_is_looked_at(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frames = [Image.new("RGB", (8, 8), (40 * number, 0, 0)) for number in range(3)]
    path = tmp_path / f"moving.{kind.lower()}"
    frames[0].save(path, kind, save_all=True, append_images=frames[1:])
    read_first(path)
    assert "the first of its 3 pictures is looked at" in capsys.readouterr().err
    frames[0].save(path, kind)
    read_first(path)
    assert capsys.readouterr().err == ""


def test_photos_that_are_not_there_are_an_error_and_not_an_empty_page(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["data", "show", "no.jsonl", "--photos", str(tmp_path / "nodir")])
    assert isinstance(result.exception, InvalidFile | SystemExit)
    assert "nodir" in str(result.exception) + result.output


def test_released_parameters_come_from_a_path_too(tmp_path: Path) -> None:
    from saywhere.models.mitr.released import to_released

    released = {name: tensor.contiguous() for name, tensor in to_released(small.network()).items()}
    save_file(released, tmp_path / "mitr.safetensors")
    found = MITR.from_released(str(tmp_path / "mitr.safetensors"), heads=4)
    assert torch.equal(found.words.table.weight, small.network().words.table.weight)
    (tmp_path / "mitr.pth").write_bytes(b"\x80\x02.")
    with pytest.raises(InvalidFile, match="pickle"):
        MITR.from_released(tmp_path / "mitr.pth")
    with pytest.raises(InvalidFile):
        MITR.from_released(tmp_path / "none.safetensors")


def test_a_thing_that_is_nowhere_has_no_place() -> None:
    look = seer(least_grounding=0.55).look(photo())
    assert not look.ground("a dinosaur").word_boxes().located.any()


_TEXTS = st.sampled_from(["cup", "a red cup", " ", "x"])


@given(
    st.lists(st.tuples(_TEXTS, st.floats(0, 9), st.floats(0, 2)), max_size=8),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 9)), max_size=12),
)
def test_windows_and_places_are_those_of_the_words_themselves(
    said: list[tuple[str, float, float]], points: list[tuple[float, float, float]]
) -> None:
    said.sort(key=lambda one: one[1])
    utterances = [Utterance(text, start, start + length) for text, start, length in said]
    trace = Trace(sorted(points, key=lambda one: one[2]) or np.empty((0, 3)))
    words, times = split_words(utterances), word_times(utterances)
    assert times.tolist() == [[word.start_s, word.end_s] for word in words]
    assert located_words(times, trace).tolist() == word_boxes(words, trace).located.tolist()


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=9))
def test_the_quick_median_is_numpys(values: list[float]) -> None:
    assert _median(np.array(values)) == pytest.approx(float(np.median(values)))
