"""Web Annotations: what the standard demands is there, and nothing of the narrative is lost in it."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saywhere.core import InvalidValue, Narrative, Trace, Utterance
from saywhere.core.narrative import HUMAN
from saywhere.formats import localized_narratives
from saywhere.formats.record import InvalidRecord
from saywhere.formats.registry import FORMATS, READABLE, detect
from saywhere.formats.web_annotation import Placed, read, read_placed, write
from tests.strategies import narratives

SVG = "{http://www.w3.org/2000/svg}"
NARRATIVE = Narrative(
    image_id="212166",
    caption="a cat sleeps",
    utterances=(Utterance("a cat", 0.0, 1.0), Utterance("sleeps", 5.0, 6.0)),
    trace=Trace([[0.1, 0.2, 0.0], [0.4, 0.8, 0.5], [0.4, 0.8, 1.5]], (0, 2)),
    dataset_id="mscoco_val2017",
    annotator_id="49",
    audio="coco_val/coco_val_212166_49.ogg",
)


def page(path: Path, *written: Narrative, **options: Any) -> dict[str, Any]:
    assert write(path / "page.jsonld", written, **options) == len(written)
    content: dict[str, Any] = json.loads((path / "page.jsonld").read_bytes())
    return content


def annotation(path: Path, narrative: Narrative = NARRATIVE, **options: Any) -> dict[str, Any]:
    (item,) = page(path, narrative, **options)["items"]
    return dict(item)


def is_iri(text: str) -> bool:
    """Whether text can stand where the standard wants an IRI: no white space, no quotes, no brackets."""
    urlsplit(text)
    return bool(text) and quote(text, safe="/:%") == text


def polylines(svg: str) -> list[list[list[float]]]:
    lines = ElementTree.fromstring(svg).findall(f"{SVG}polyline")
    return [[[float(n) for n in pair.split(",")] for pair in line.attrib["points"].split()] for line in lines]


def check_target(target: str | dict[str, Any]) -> None:
    if isinstance(target, str):
        assert is_iri(target)
        return
    assert target["type"] == "SpecificResource"
    assert is_iri(target["source"])
    selector = target["selector"]
    if selector["type"] == "FragmentSelector":
        assert selector["conformsTo"] == "http://www.w3.org/TR/media-frags/"
        x, y, width, height = map(float, selector["value"].removeprefix("xywh=percent:").split(","))
        assert min(width, height) > 0
        assert min(x, y) >= 0
        assert max(x + width, y + height) <= 100 + 1e-6
    else:
        assert selector["type"] == "SvgSelector"
        assert polylines(selector["value"])


@given(written=st.lists(narratives(), max_size=3))
def test_every_page_has_what_the_standard_demands(
    written: list[Narrative], tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = page(tmp_path_factory.mktemp("page"), *written)
    assert content["@context"][0] == "http://www.w3.org/ns/anno.jsonld"
    assert content["type"] == "AnnotationPage"
    ids = [content["id"], *(item["id"] for item in content["items"])]
    assert all(uuid.UUID(one).urn == one for one in ids)
    assert len(content["items"]) == len(written)
    for item, narrative in zip(content["items"], written, strict=True):
        assert (item["type"], item["motivation"]) == ("Annotation", "describing")
        said = {"type": "TextualBody", "value": narrative.caption, "language": narrative.language or "en"}
        assert said.items() <= item["body"][0].items()
        assert len(item["target"]) >= 1
        for target in item["target"]:
            check_target(target)


@given(narrative=narratives())
def test_trace_and_timing_can_be_read_back_exactly(
    narrative: Narrative, tmp_path_factory: pytest.TempPathFactory
) -> None:
    item = annotation(tmp_path_factory.mktemp("back"), narrative)
    said = [(u["text"], u["startTime"], u["endTime"]) for u in item["body"][0].get("utterances", [])]
    assert said == [(u.text, u.start_s, u.end_s) for u in narrative.utterances]
    if len(narrative.trace):
        lines, times = polylines(item["target"][0]["selector"]["value"]), item["target"][0]["pointTimes"]
        assert lines == [segment[:, :2].tolist() for segment in narrative.trace.segments]
        assert times == narrative.trace.times_s.tolist()


def test_a_located_word_has_its_box_in_percent_and_its_time(tmp_path: Path) -> None:
    _, a, cat, *rest = annotation(tmp_path)["target"]
    assert rest == [], "the word `sleeps` has no place"
    # The words share the second of "a cat" by their letters: 0.25 s and 0.75 s, the second with one point only.
    assert (a["word"], a["startTime"], a["endTime"]) == ("a", 0.0, 0.25)
    assert polylines(a["selector"]["value"]) == [[[0.1, 0.2], [0.1, 0.2]]]
    assert (cat["word"], cat["startTime"], cat["endTime"]) == ("cat", 0.25, 1.0)
    one_word = replace(NARRATIVE, utterances=(Utterance("cat", 0.0, 1.0),))
    _, target = annotation(tmp_path, one_word)["target"]
    assert target["selector"]["value"] == "xywh=percent:10,20,30,60"


def test_every_term_of_ours_is_declared_in_the_context(tmp_path: Path) -> None:
    content = page(tmp_path, NARRATIVE, replace(NARRATIVE, utterances=(Utterance("cat", 0.0, 1.0),)))
    declared = set(content["@context"][1])
    standard = {"id", "type", "motivation", "creator", "generator", "body", "target", "name", "nickname", "value"}
    standard |= {"format", "language", "purpose", "source", "selector", "conformsTo"}

    def keys(part: Any) -> set[str]:
        if isinstance(part, dict):
            return set(part).union(*(keys(value) for value in part.values()))
        return set().union(*(keys(value) for value in part)) if isinstance(part, list) else set()

    assert keys(content["items"]) == declared | standard


def test_humans_and_machines_are_told_apart(tmp_path: Path) -> None:
    human, unknown, machine = page(
        tmp_path, NARRATIVE, replace(NARRATIVE, annotator_id=""), replace(NARRATIVE, origin="mitr")
    )["items"]
    assert human["creator"] == {"type": "Person", "nickname": "49"}
    assert unknown["creator"] == {"type": "Person"}
    assert machine["creator"] == {"type": "Software", "name": "mitr"}
    assert {item["generator"]["type"] for item in (human, unknown, machine)} == {"Software"}


def test_the_recording_is_a_second_body(tmp_path: Path) -> None:
    assert annotation(tmp_path)["body"][1] == {"id": NARRATIVE.audio, "type": "Sound"}
    assert len(annotation(tmp_path, replace(NARRATIVE, audio=""))["body"]) == 1


def test_images_get_the_iri_and_captions_the_language_that_is_asked_for(tmp_path: Path) -> None:
    assert annotation(tmp_path)["target"][0]["source"] == "mscoco_val2017/212166"
    item = annotation(tmp_path, language="de", image=lambda n: f"https://photos.example/{n.image_id}.jpg")
    assert item["body"][0]["language"] == "de"
    assert {target["source"] for target in item["target"]} == {"https://photos.example/212166.jpg"}


def test_a_narrative_without_a_place_is_about_the_whole_image(tmp_path: Path) -> None:
    (target,) = annotation(tmp_path, Narrative("a b/ü.jpg", "words"))["target"]
    assert is_iri(target)
    assert unquote(target) == "a b/ü.jpg"


def test_ids_depend_on_the_content_alone(tmp_path: Path) -> None:
    other = replace(NARRATIVE, caption="a dog")
    (a, b), (b2, a2) = (page(tmp_path, *pair)["items"] for pair in ((NARRATIVE, other), (other, NARRATIVE)))
    assert (a["id"], b["id"]) == (a2["id"], b2["id"])
    assert a["id"] != b["id"]
    assert page(tmp_path, NARRATIVE)["id"] != page(tmp_path, other)["id"]


def test_the_real_record_becomes_an_annotation(shared: Callable[[str], Path], tmp_path: Path) -> None:
    (narrative,) = localized_narratives.read(shared("data/localized_narratives/coco_val_212166_49.jsonl"))
    assert isinstance(narrative, Narrative)
    item = annotation(tmp_path, narrative)
    assert len(item["target"]) == 1 + int(np.sum(narrative.word_boxes().located))
    for target in item["target"]:
        check_target(target)


@pytest.mark.parametrize("wrong", [replace(NARRATIVE, image_id="\ud800"), replace(NARRATIVE, caption="\udfff"), "text"])
def test_what_cannot_be_written_leaves_no_file(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="narrative"):
        write(tmp_path / "page.jsonld", [NARRATIVE, wrong])
    assert list(tmp_path.iterdir()) == []


def test_the_registry_offers_it_and_tells_it_by_its_content(tmp_path: Path) -> None:
    assert "web-annotation" in READABLE
    path = tmp_path / "page"
    assert FORMATS["web-annotation"].write(path, [NARRATIVE]) == 1
    assert detect(path).name == "web-annotation"


def same(one: Any, other: Any) -> bool:
    """Whether two narratives say the same, times to the microsecond."""
    return (
        replace(one, trace=other.trace) == replace(other, trace=other.trace)
        and one.trace.starts == other.trace.starts
        and np.array_equal(one.trace.points, other.trace.points)
    )


@given(st.lists(narratives(), max_size=3))
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_read_again(told: list[Narrative]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.jsonld"
        write(path, told, language="")
        found = list(read(path))
    assert len(found) == len(told)
    for one, before in zip(found, told, strict=True):
        assert isinstance(one, Narrative), one
        assert same(one, replace(before, annotator_id=before.annotator_id if before.origin == HUMAN else ""))


FOREIGN = {
    "@context": "http://www.w3.org/ns/anno.jsonld",
    "id": "http://example.org/anno1",
    "type": "Annotation",
    "creator": {"type": "Person", "name": "Ada"},
    "body": {"type": "TextualBody", "value": "a red cup"},
    "target": {
        "source": "http://example.org/photos/kitchen.jpg?size=large",
        "selector": {"type": "FragmentSelector", "value": "xywh=percent:10,20,30,40"},
    },
}


@pytest.mark.parametrize(
    ("change", "box", "in_pixels"),
    [
        ({}, (0.1, 0.2, 0.4, 0.6), False),
        ({"target": "http://example.org/kitchen.jpg#xywh=10,20,30,40"}, (10, 20, 40, 60), True),
        ({"target": {"id": "kitchen.jpg"}, "body": None, "bodyValue": "a red cup"}, None, False),
    ],
)
def test_annotations_of_other_programs_are_read(
    tmp_path: Path, change: dict[str, Any], box: tuple[float, ...] | None, in_pixels: bool
) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(FOREIGN | change))
    (found,) = read_placed(path)
    assert isinstance(found, Placed), found
    assert (found.narrative.image_id, found.narrative.caption) == ("kitchen.jpg", "a red cup")
    assert (found.narrative.origin, found.narrative.annotator_id) == (HUMAN, "Ada")
    assert found.box_xyxy == (None if box is None else pytest.approx(box))
    assert found.in_pixels == in_pixels


@pytest.mark.parametrize(
    ("language", "known"),
    [("pt-BR", "pt-BR"), (["de"], "de"), (["de", "fr"], ""), ("German, I think", ""), (7, ""), (None, "")],
)
def test_the_language_of_a_text_is_read_where_it_is_one_tag(language: Any, known: str, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(FOREIGN | {"body": {"value": "ein Becher", "language": language}}))
    (found,) = read(path)
    assert isinstance(found, Narrative)
    assert found.language == known


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"body": []}, "no text"),
        ({"target": ["a.jpg", "b.jpg"]}, "2 images"),
        ({"target": [{"selector": {}}]}, "names no image"),
        ({"target": {"source": "a", "selector": {"type": "SvgSelector", "value": "<svg/>"}}}, "not a rectangle"),
        ({"target": {"source": "a", "selector": {"value": "xywh=1,2,0,4"}}}, "without area"),
        ({"target": {"source": "a", "pointTimes": [0], "selector": {"value": "<svg>"}}}, "view box"),
        ({"creator": 7}, "creator"),
        ({"target": 3}, "names no image"),
    ],
)
def test_a_bad_annotation_is_named_and_the_others_are_read(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps([FOREIGN, FOREIGN | change, FOREIGN]))
    first, bad, last = read(path)
    assert first == last
    assert isinstance(bad, InvalidRecord)
    assert bad.where == "[1]"
    assert reason in bad.reason
