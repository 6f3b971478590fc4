from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats import coco_captions
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.formats.record import InvalidRecord

ids = st.integers(0, 10**12) | st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
sentences = st.text(st.characters(codec="utf-8"), max_size=30).filter(lambda text: bool(text.strip()))
images = st.tuples(st.sampled_from(["", "a.jpg", "é.png"]), st.none() | st.tuples(*[st.integers(1, 2**15)] * 2))


@st.composite
def records(draw: st.DrawFn) -> list[CaptionRecord]:
    """Captions of some images, about each of which they agree."""
    known = draw(st.dictionaries(ids, images, min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(st.sampled_from(list(known)), ids, sentences), max_size=6))
    return [CaptionRecord(image, own, text, known[image][0], *(known[image][1] or ())) for image, own, text in rows]


def write(path: Path, **members: object) -> Path:
    path.write_text(json.dumps(members))
    return path


def test_the_official_file_is_read_whole(shared: Callable[[str], Path]) -> None:
    values = list(coco_captions.read(shared("data/coco_val/captions_val2017.json")))
    assert len(values) == 22_512
    assert values[0] == CaptionRecord(
        179765, 38, "A black Honda motorcycle parked in front of a garage.", "000000179765.jpg", 640, 480
    )
    assert not any(isinstance(value, InvalidRecord) for value in values)


def test_the_official_file_survives_being_written(shared: Callable[[str], Path], tmp_path: Path) -> None:
    values = list(coco_captions.read(shared("data/coco_val/captions_val2017.json")))[:2000]
    good = [value for value in values if isinstance(value, CaptionRecord)]
    assert coco_captions.write(tmp_path / "again.json", good) == 2000
    assert list(coco_captions.read(tmp_path / "again.json")) == values


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=records())
def test_what_is_written_is_read_and_the_same_bytes_come_of_the_same_values(
    values: list[CaptionRecord], tmp_path: Path
) -> None:
    assert coco_captions.write(tmp_path / "a.json", values) == len(values)
    assert list(coco_captions.read(tmp_path / "a.json")) == values
    coco_captions.write(tmp_path / "b.json", values)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_the_language_that_the_studio_notes_is_read_and_what_is_no_tag_is_named(tmp_path: Path) -> None:
    captions = [{"id": i, "image_id": 1, "caption": "ein Haus", "language": tag} for i, tag in enumerate(("de", "?"))]
    path = tmp_path / "captions.json"
    path.write_text(json.dumps({"annotations": captions}), encoding="utf-8")
    found, bad = coco_captions.read(path)
    assert isinstance(found, CaptionRecord)
    assert found.language == "de"
    assert isinstance(bad, InvalidRecord)
    assert "language" in bad.reason


def test_a_caption_of_an_image_that_is_not_listed_is_read_with_its_size_unknown(tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", annotations=[{"id": 1, "image_id": 9, "caption": "a cat"}])
    assert list(coco_captions.read(path)) == [CaptionRecord(9, 1, "a cat", "", None, None)]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ({"id": 9, "width": 0, "height": 5}, "width"),
        ({"id": 9, "width": 5}, "only one of width and height"),
        ({"file_name": "a"}, "id"),
        ({"id": 8, "file_name": "b"}, "listed before"),
    ],
)
def test_a_bad_image_is_reported_and_its_captions_are_kept(
    image: dict[str, object], words: str, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "c.json",
        images=[{"id": 8, "file_name": "a"}, image],
        annotations=[{"id": 1, "image_id": 9, "caption": "a cat"}],
    )
    bad, value = coco_captions.read(path)
    assert isinstance(bad, InvalidRecord)
    assert bad.where.startswith("images[1]")
    assert words in str(bad)
    assert value == CaptionRecord(9, 1, "a cat")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"images": []}', "no member `annotations`"),
        ('{"annotations": {}}', "should be a list"),
        ("[]", "should be an object"),
        ("7", "not a JSON document"),
    ],
)
def test_a_document_without_annotations_is_refused(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(InvalidFile, match=words):
        list(coco_captions.read(tmp_path / "c.json"))


def test_a_list_given_twice_is_reported_once(tmp_path: Path) -> None:
    item = '{"id": 1, "image_id": 9, "caption": "a cat"}'
    (tmp_path / "c.json").write_text(f'{{"annotations": [{item}], "annotations": [{item}, {item}]}}')
    value, bad = coco_captions.read(tmp_path / "c.json")
    assert isinstance(value, CaptionRecord)
    assert isinstance(bad, InvalidRecord)
    assert (bad.where, bad.reason) == ("annotations", "the key is given twice")


def test_a_cut_in_a_part_that_nobody_needs_is_still_reported(tmp_path: Path) -> None:
    item = '{"id": 1, "image_id": 9, "caption": "a cat"}'
    (tmp_path / "c.json").write_text(f'{{"annotations": [{item}], "licenses": [{{"id": 1}}, {{"na')
    value, bad = coco_captions.read(tmp_path / "c.json")
    assert isinstance(value, CaptionRecord)
    assert isinstance(bad, InvalidRecord)
    assert bad.where == "licenses"
    assert "the document ends inside it" in bad.reason


@pytest.mark.parametrize(
    "members", [{"caption": " \n"}, {"caption": "a", "width": 3}, {"caption": "a", "width": 3, "height": 0}]
)
def test_a_value_that_no_file_could_hold_cannot_be_made(members: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        CaptionRecord(1, 2, **members)  # type: ignore[arg-type]


def test_values_that_disagree_about_an_image_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="another file name or size"):
        coco_captions.write(tmp_path / "c.json", [CaptionRecord(1, 1, "a", "x.jpg"), CaptionRecord(1, 2, "b", "y.jpg")])
    with pytest.raises(InvalidValue, match="surrogate"):
        coco_captions.write(tmp_path / "c.json", [CaptionRecord(1, 1, "a\ud800")])
    assert list(tmp_path.iterdir()) == []
