"""Exports read back: by our own readers, by pycocotools, and by hand where the standard has no reader of ours."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidValue, Narrative, Trace, UnknownName
from saywhere.core.description import alt_text
from saywhere.formats import coco_captions, localized_narratives
from saywhere.studio.descriptions import long_description
from saywhere.studio.exports import FORMATS, Export, export, narrative_of
from saywhere.studio.photos import NAMELESS
from tests.strategies import narratives

PHOTO = {"id": "ab" * 16, "name": "my kitchen & co.jpg", "width": 640, "height": 480}
ID = "feedbeef" * 4
POINTS = [[0.1, 0.5, 0.0], [0.2, 0.52, 0.4], [0.15, 0.48, 0.9], [0.8, 0.1, 1.5], [0.9, 0.2, 1.9], [0.9, 0.2, 2.0]]
WORDS = [("A", 0.0, 0.2), ("cat,", 0.2, 1.0), ("a", 1.4, 1.6), ("red", 1.6, 1.8), ("lamp.", 1.8, 2.5), ("Hm.", 9, 9.5)]


def record(**changes: Any) -> dict[str, Any]:
    return {
        "id": ID,
        "photo": PHOTO["id"],
        "annotator": "ada",
        "text": "A cat, a red lamp. Hm.",
        "words": [{"text": text, "start_s": start, "end_s": end} for text, start, end in WORDS],
        "trace": {"points": POINTS, "starts": [0, 3]},
        "keys": [],
        "audio": True,
        "origin": "human",
        "created": "2026-01-01T00:00:00.000+00:00",
        "timed_by": "audio",
        **changes,
    }


def record_of(narrative: Narrative) -> dict[str, Any]:
    return record(
        text=narrative.caption,
        words=[{"text": w.text, "start_s": w.start_s, "end_s": w.end_s} for w in narrative.words],
        trace={"points": narrative.trace.points.tolist(), "starts": list(narrative.trace.starts)},
        annotator=narrative.annotator_id,
        audio=bool(narrative.audio),
    )


def read_line(file: Export, folder: Path) -> Narrative:
    path = folder / file.file_name
    path.write_bytes(file.data)
    (value,) = localized_narratives.read(path)
    assert isinstance(value, Narrative)
    return value


# --- Localized Narratives ---


def test_the_official_line_has_all_official_keys_and_strokes_as_drawn(tmp_path: Path) -> None:
    file = export(record(), PHOTO, "localized_narratives")
    line = json.loads(file.data)
    assert list(line) == [
        "dataset_id", "image_id", "annotator_id", "caption", "timed_caption", "traces", "voice_recording",
    ]  # fmt: skip
    assert line["voice_recording"] == f"{ID}.wav"
    assert [[list(p.values()) for p in stroke] for stroke in line["traces"]] == [POINTS[:3], POINTS[3:]]
    assert line["timed_caption"][1] == {"utterance": "cat,", "start_time": 0.2, "end_time": 1.0}
    assert file.data.count(b"\n") == 1
    assert localized_narratives.sniff(tmp_path / file.file_name, file.data)


@given(narratives())
def test_order_and_times_of_any_narrative_survive_the_official_line(narrative: Narrative) -> None:
    import tempfile

    kept = record_of(narrative)
    with tempfile.TemporaryDirectory() as folder:
        again = read_line(export(kept, PHOTO, "localized_narratives"), Path(folder))
    assert again == narrative_of(kept, PHOTO)
    assert again.trace == narrative.trace
    assert again.caption == narrative.caption


@pytest.mark.parametrize(
    ("name", "image_id"),
    [
        ("000000000139.jpg", "139"),
        ("COCO_val2014_000000000042.jpg", "42"),
        ("my kitchen & co.jpg", "my kitchen & co"),
        ("a.b.png", "a.b"),
    ],
)
def test_the_photos_own_name_says_which_image_it_is(tmp_path: Path, name: str, image_id: str) -> None:
    file = export(record(), PHOTO | {"name": name}, "localized_narratives")
    assert read_line(file, tmp_path).image_id == image_id


@pytest.mark.parametrize("name", ["", NAMELESS])
def test_a_photo_without_a_name_is_called_by_its_content(tmp_path: Path, name: str) -> None:
    file = export(record(), PHOTO | {"name": name}, "localized_narratives")
    assert read_line(file, tmp_path).image_id == PHOTO["id"]


@pytest.mark.parametrize("origin", ["human", "saywhere-base"])
def test_every_export_has_the_same_word_for_who_made_it(tmp_path: Path, origin: str) -> None:
    files = {name: export(record(origin=origin), PHOTO, name) for name in ("localized_narratives", "coco")}
    assert read_line(files["localized_narratives"], tmp_path).origin == origin
    assert json.loads(files["coco"].data)["annotations"][0]["origin"] == origin


def test_a_machine_is_named_as_the_origin(tmp_path: Path) -> None:
    made = read_line(export(record(origin="saywhere-base", audio=False), PHOTO, "localized_narratives"), tmp_path)
    assert (made.origin, made.audio) == ("saywhere-base", "")
    assert read_line(export(record(), PHOTO, "localized_narratives"), tmp_path).origin == "human"


# --- W3C Web Annotation ---


def annotation(**changes: Any) -> dict[str, Any]:
    file = export(record(**changes), PHOTO, "web_annotation")
    assert file.media_type == "application/ld+json"
    return dict(json.loads(file.data))


def strokes(selector: dict[str, str]) -> list[list[list[float]]]:
    assert selector["type"] == "SvgSelector"
    svg = ElementTree.fromstring(selector["value"])
    return [[[float(c) for c in pair.split(",")] for pair in line.attrib["points"].split()] for line in svg]


def test_an_annotation_says_who_what_when_and_why() -> None:
    made = annotation()
    assert made["@context"][0] == "http://www.w3.org/ns/anno.jsonld"
    assert made["type"] == "Annotation"
    assert made["motivation"] == "describing"
    assert made["creator"] == {"type": "Person", "nickname": "ada"}
    assert made["generator"] == {"type": "Software", "name": "saywhere"}
    assert made["created"] == "2026-01-01T00:00:00.000+00:00"
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", made["id"])
    assert made["body"][0]["value"] == record()["text"]
    assert made["body"][1] == {"id": f"{ID}.wav", "type": "Sound"}
    assert {target["source"] for target in made["target"]} == {"my%20kitchen%20%26%20co.jpg"}
    assert annotation(origin="saywhere-base")["creator"] == {"type": "Software", "name": "saywhere-base"}


def test_the_trace_can_be_read_back_from_the_annotation() -> None:
    whole = annotation()["target"][0]
    lines = strokes(whole["selector"])
    xy = [point for line in lines for point in line]
    again = Trace(np.column_stack([xy, whole["pointTimes"]]), [0, len(lines[0])])
    assert again == narrative_of(record(), PHOTO).trace


def test_each_word_selects_the_part_of_the_trace_during_it() -> None:
    words = annotation()["target"][1:]
    assert [(w["word"], w["startTime"], w["endTime"]) for w in words] == [
        ("A", 0.0, 0.2), ("cat,", 0.2, 1.0), ("a", 1.4, 1.6), ("red", 1.6, 1.8), ("lamp.", 1.8, 2.5),
    ]  # fmt: skip
    assert strokes(words[1]["selector"]) == [[[0.2, 0.52], [0.15, 0.48]]]
    assert strokes(words[4]["selector"]) == [[[0.9, 0.2], [0.9, 0.2]]]


def test_an_annotation_without_trace_is_of_the_whole_photo() -> None:
    assert annotation(trace={"points": [], "starts": []})["target"] == ["my%20kitchen%20%26%20co.jpg"]


# --- COCO ---


def test_the_caption_is_read_back_by_our_reader_and_by_pycocotools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pycocotools.coco import COCO

    file = export(record(), PHOTO, "coco")
    path = tmp_path / file.file_name
    path.write_bytes(file.data)
    (caption,) = coco_captions.read(path)
    assert isinstance(caption, coco_captions.CaptionRecord)
    assert [word.word for word in caption.words] == [word["text"] for word in record()["words"]]
    plain = replace(caption, annotator="", origin="", words=())
    assert plain == coco_captions.CaptionRecord(1, 1, record()["text"], PHOTO["name"], 640, 480)
    coco = COCO(str(path))
    assert "Done" in capsys.readouterr().out
    (entry,) = coco.loadAnns(coco.getAnnIds(imgIds=1))
    assert entry["caption"] == record()["text"]
    assert coco.loadImgs(1)[0]["width"] == 640


def test_words_with_a_place_have_a_box_in_pixels_and_their_times() -> None:
    words = json.loads(export(record(), PHOTO, "coco").data)["annotations"][0]["words"]
    assert [(w["word"], w["start_s"], w["end_s"]) for w in words] == [(t, s, e) for t, s, e in WORDS]
    assert words[1]["bbox"] == [96, 230.4, 32, 19.2]
    assert words[1]["area"] == pytest.approx(32 * 19.2)
    assert words[4]["bbox"] == [576, 96, 1, 1]
    assert "bbox" not in words[5]


def test_boxes_of_a_model_come_before_those_of_the_trace() -> None:
    boxes = [None, [0.0, 0.0, 0.5, 0.5], None, None, None, [1.0, 1.0, 1.0, 1.0]]
    words = json.loads(export(record(boxes=boxes), PHOTO, "coco").data)["annotations"][0]["words"]
    assert [w.get("bbox") for w in words] == [None, [0, 0, 320, 240], None, None, None, [639, 479, 1, 1]]


@given(narratives())
def test_every_box_has_an_area_and_lies_in_the_photo(narrative: Narrative) -> None:
    if not narrative.caption.strip():
        with pytest.raises(InvalidValue, match="empty"):
            export(record_of(narrative), PHOTO, "coco")
        return
    for w in json.loads(export(record_of(narrative), PHOTO, "coco").data)["annotations"][0]["words"]:
        x, y, width, height = w.get("bbox", (0, 0, 1, 1))
        assert min(width, height) >= 0.999
        assert 0 <= x <= x + width <= 640.002
        assert 0 <= y <= y + height <= 480.002


# --- text ---


def test_the_text_has_an_alt_text_and_a_description_along_the_trace_marked_as_human() -> None:
    file = export(record(), PHOTO, "text")
    assert file.media_type == "text/plain; charset=utf-8"
    assert file.data.decode() == (
        "Photo: my kitchen & co.jpg\n\n"
        "Alt text (human-written, by ada):\nA cat, a red lamp.\n\n"
        "Long description (human-written, by ada):\n"
        "On the left: A cat,\nAt the top right: a red lamp. Hm.\n"
    )


@pytest.mark.parametrize(
    ("changes", "mark"),
    [
        ({"origin": "saywhere-base"}, "machine-written, by saywhere-base"),
        ({"annotator": ""}, "human-written"),
    ],
)
def test_both_texts_say_who_wrote_them(changes: dict[str, Any], mark: str) -> None:
    assert export(record(**changes), PHOTO, "text").data.decode().count(f"({mark})") == 2


def test_without_times_the_description_is_the_text_sentence_by_sentence() -> None:
    assert long_description(narrative_of(record(words=[]), PHOTO)) == "A cat, a red lamp.\nHm."
    assert (
        long_description(narrative_of(record(trace={"points": [], "starts": []}), PHOTO)) == "A cat, a red lamp.\nHm."
    )


@given(narratives())
def test_the_long_description_says_every_word_once_and_in_order(narrative: Narrative) -> None:
    if not len(narrative.trace):
        assert long_description(narrative).split() == narrative.caption.split()
        return
    lines = long_description(narrative).splitlines() if narrative.words else []
    place = r"(?:In the middle|Across the photo|On the (?:left|right)|At the (?:top|bottom)(?: left| right)?): "
    said = " ".join(re.sub(f"^{place}", "", line) for line in lines)
    assert said.split() == [w.text for w in narrative.words]


@pytest.mark.parametrize(
    ("text", "alt"),
    [
        ("A cat. It sleeps.", "A cat."),
        ("  A\n cat  ", "A cat"),
        ("Is it? Yes!", "Is it?"),
        ("A 3.5 m wall. And more.", "A 3.5 m wall."),
        ("x" * 200, "x" * 124 + "…"),
        ("word " * 40, "word " * 24 + "word…"),
        ("x" * 125, "x" * 125),
    ],
)
def test_the_alt_text_is_the_first_sentence_cut_at_a_word(text: str, alt: str) -> None:
    assert alt_text(text) == alt


@given(st.text(max_size=400))
def test_the_alt_text_is_never_long_and_only_says_what_was_written(text: str) -> None:
    alt = alt_text(text)
    assert len(alt) <= 125
    assert " ".join(text.split()).startswith(alt.removesuffix("…"))


# --- all ---


@pytest.mark.parametrize("name", FORMATS)
def test_every_export_has_a_safe_name_and_does_not_change_the_record(name: str) -> None:
    kept = record(text="<script>alert(1)</script>\r\nX: y", words=[], annotator='"; rm -rf /')
    file = export(kept, PHOTO | {"name": "../../x\r\n.jpg"}, name)
    assert re.fullmatch(r"narrative-[0-9a-f]+(\.[a-z]+)+", file.file_name)
    assert file.data.endswith(b"\n")
    assert kept == record(text="<script>alert(1)</script>\r\nX: y", words=[], annotator='"; rm -rf /')


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownName) as unknown:
        export(record(), PHOTO, "cocoa")
    assert unknown.value.did_you_mean == ["coco"]


@pytest.mark.parametrize("name", ["coco", "text"])
def test_without_text_there_is_nothing_to_caption(name: str) -> None:
    with pytest.raises(InvalidValue, match="empty"):
        export(record(text=" \n"), PHOTO, name)
