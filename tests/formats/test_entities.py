from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats import entities
from saywhere.formats.entities import EntitiesCaption, EntityPhrase
from saywhere.formats.record import InvalidRecord

SENTENCES = """[/EN#1/people A man] with [/EN#2/bodyparts/people a beard] rides [/EN#3/vehicles a bike] .
[/EN#1/people He] is in [/EN#4/scene a park] , not near [/EN#0/notvisual each other] .
"""
XML = """<annotation>
  <filename>36979.jpg</filename>
  <size><width>500</width><height>375</height><depth>3</depth></size>
  <object><name>1</name><name>2</name>
    <bndbox><xmin>1</xmin><ymin>11</ymin><xmax>101</xmax><ymax>375</ymax></bndbox></object>
  <object><name>2</name>
    <bndbox><xmin>21</xmin><ymin>31</ymin><xmax>41</xmax><ymax>51</ymax></bndbox></object>
  <object><name>3</name><nobndbox>1</nobndbox></object>
  <object><name>4</name><scene>1</scene><nobndbox>1</nobndbox></object>
</annotation>"""
MAN, BEARD = (0, 10, 100, 374), (20, 30, 40, 50)


def release(folder: Path, sentences: str | bytes = SENTENCES, xml: str | bytes | None = XML) -> Path:
    for name, suffix, content in (("Sentences", "txt", sentences), ("Annotations", "xml", xml)):
        (folder / name).mkdir(exist_ok=True)
        file = folder / name / f"36979.{suffix}"
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def bad_reasons(folder: Path) -> list[str]:
    return [str(value) for value in entities.read(folder) if isinstance(value, InvalidRecord)]


@pytest.mark.parametrize(
    ("name", "n_images", "n_captions", "n_boxes"),
    [("coco_entities_test.json", 3526, 7689, 41_199), ("flickr30k_entities_test.json", 1000, 4998, 18_196)],
)
def test_real_files_give_one_value_for_each_caption(
    name: str, n_images: int, n_captions: int, n_boxes: int, shared: Callable[[str], Path]
) -> None:
    path = shared(f"data/entities/{name}")
    values = [value for value in entities.read(path) if isinstance(value, EntitiesCaption)]
    assert len(values) == n_captions
    assert len({value.image_id for value in values}) == n_images
    shared_once = {(value.image_id, value.boxes_xyxy_px): len(value.boxes_xyxy_px) for value in values}
    assert sum(shared_once.values()) <= n_boxes
    assert (
        sum(len(boxes) for captions in json.loads(path.read_bytes()).values() for boxes in captions.values()) == n_boxes
    )


def test_captions_that_share_boxes_come_apart(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text('{"7": {"a cat\\nthe cat": [[0, 1, 10, 21]], "nothing": []}}')
    values = list(entities.read(tmp_path / "e.json"))
    assert values == [
        EntitiesCaption("7", "a cat", ((0, 1, 10, 21),)),
        EntitiesCaption("7", "the cat", ((0, 1, 10, 21),)),
        EntitiesCaption("7", "nothing", ()),
    ]
    assert isinstance(values[0], EntitiesCaption)
    assert values[0].boxes_xyxy((20, 42)) == ((0, 1 / 42, 0.5, 0.5),)
    with pytest.raises(InvalidValue, match="unknown size"):
        values[0].boxes_xyxy()


@pytest.mark.parametrize(
    ("content", "words", "n_bad"),
    [
        ('{"7": {"a\\nb": [[5, 1, 5, 9]]}}', "no area", 2),
        ('{"7": {"a\\nb": [[1, 2, 3]]}}', "length 4", 2),
        ('{"7": {"a\\n": []}}', "caption is empty", 1),
        ('{"7": {"a": [], "a": []}}', "given twice", 1),
        ('{"7": {"a": []}, "7": {"b": []}}', "given twice", 1),
        ('{"7": [1]}', "object of captions", 1),
        ('{"": {"a": []}}', "names no image", 1),
        ('{"7": {"\\ud800": []}}', "key is not valid text", 1),
    ],
)
def test_bad_entries_are_bad_records_one_for_each_caption(content: str, words: str, n_bad: int, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(content[:-1] + ', "8": {"good": []}}')
    values = list(entities.read(tmp_path / "e.json"))
    bad = [value for value in values if isinstance(value, InvalidRecord)]
    assert values[-1] == EntitiesCaption("8", "good", ())
    assert len(bad) == n_bad
    assert words in bad[0].reason


def test_the_release_gives_phrases_with_their_boxes(tmp_path: Path) -> None:
    first, second = entities.read(release(tmp_path))
    assert first == EntitiesCaption(
        "36979",
        "A man with a beard rides a bike .",
        (MAN, BEARD),
        (
            EntityPhrase("A man", 0, "1", ("people",), (MAN,)),
            EntityPhrase("a beard", 3, "2", ("bodyparts", "people"), (MAN, BEARD)),
            EntityPhrase("a bike", 6, "3", ("vehicles",)),
        ),
        (500, 375),
    )
    assert isinstance(second, EntitiesCaption)
    assert second.caption == "He is in a park , not near each other ."
    assert [(p.text, p.first_word, p.is_scene, p.entity_id) for p in second.phrases] == [
        ("He", 0, False, "1"),
        ("a park", 3, True, "4"),
        ("each other", 8, False, "0"),
    ]
    for phrase in (*first.phrases, *second.phrases):
        words = (first if phrase in first.phrases else second).caption.split()
        assert words[phrase.first_word :][: len(phrase.text.split())] == phrase.text.split()
    assert first.boxes_xyxy()[0] == (0, 10 / 375, 0.2, 374 / 375)
    assert entities.sniff(tmp_path, b"")


BILLION_LAUGHS = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;">]><annotation>&c;</annotation>'


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        (BILLION_LAUGHS, "document type"),
        (b'<?xml version="1.0" encoding="cp037"?>' + BILLION_LAUGHS.encode("cp037"), "not UTF-8"),
        (BILLION_LAUGHS.encode("utf-16"), "not UTF-8"),
        (None, "cannot be opened"),
        ("", "not valid XML"),
        ("<annotation>", "not valid XML"),
        ("<annotation/>", "no size"),
        (XML.replace("<width>500</width>", ""), "size/width is ''"),
        (XML.replace("500", "9" * 5000), "not a whole number"),
        (XML.replace("<xmax>101<", "<xmax>1<"), "no area"),
        (XML.replace("<xmax>101<", "<xmax>NaN<"), "bndbox/xmax"),
    ],
)
def test_bad_xml_makes_bad_records_of_all_its_captions(xml: str | bytes | None, words: str, tmp_path: Path) -> None:
    reasons = bad_reasons(release(tmp_path, xml=xml))
    assert len(reasons) == 2
    assert words in reasons[0]


@pytest.mark.parametrize(
    ("sentences", "words"),
    [
        ("[/EN#1/people A man rides\n", "mark-up is broken"),
        ("[/EN#/people A man] rides\n", "mark-up is broken"),
        ("[/EN#1/people [/EN#2/people A man] b] rides\n", "mark-up is broken"),
        (b"caf\xe9\n", "not UTF-8"),
    ],
)
def test_bad_lines_are_bad_records_and_the_next_line_is_read(
    sentences: str | bytes, words: str, tmp_path: Path
) -> None:
    first = sentences.encode() if isinstance(sentences, str) else sentences
    bad, good = entities.read(release(tmp_path, first + b"\nA [man] .\n"))
    assert isinstance(bad, InvalidRecord)
    assert bad.line == 1
    assert words in bad.reason
    assert isinstance(good, EntitiesCaption)
    assert good.caption == "A [man] ."


def test_boxes_without_sentences_are_reported_and_folders_must_be_there(tmp_path: Path) -> None:
    release(tmp_path)
    (tmp_path / "Annotations" / "5.xml").write_text(XML)
    assert any("no Sentences/5.txt" in reason for reason in bad_reasons(tmp_path))
    with pytest.raises(InvalidFile, match="no folder Sentences"):
        list(entities.read(tmp_path / "Annotations"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sentences=st.binary(max_size=60) | st.text(alphabet="[]/EN#1 ap\n").map(str.encode), xml=st.binary(max_size=60))
def test_no_bytes_crash_the_reader_of_the_release(sentences: bytes, xml: bytes, tmp_path: Path) -> None:
    values = list(entities.read(release(tmp_path, sentences, xml)))
    assert all(isinstance(value, InvalidRecord) for value in values)
    for value in entities.read(release(tmp_path, sentences)):
        assert isinstance(value, InvalidRecord) or value.caption.strip()
