"""The parts joined: look once, caption, ground, narrate, and from a folder again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from saywhere.core import (
    Box,
    BoxSet,
    Caption,
    InvalidFile,
    InvalidValue,
    Nearest,
    Point,
    Region,
    Trace,
    UnknownName,
    WholeImage,
)
from saywhere.models.folder import save_part
from saywhere.models.patchioner.consensus import ConsensusConfig, InverseFrequency, consensus
from saywhere.models.patchioner.eyes import AlignedView, EncoderEyes
from saywhere.models.patchioner.memory import MemoryGap
from saywhere.models.patchioner.seer import GroundingConfig, OptionalParts, Seer, read_config, save_config
from saywhere.models.patchioner.writers import _ECHO, VectorWriter
from saywhere.models.search import GenerationConfig
from saywhere.vision import Found, View
from tests.models.patchioner_seeing import (
    BOTTOM_RIGHT,
    LEFT,
    SENTENCES,
    TOP_RIGHT,
    ColourEncoder,
    ThingFinder,
    ThingReader,
    agreeing_seer,
    alignment,
    attentive_decoder,
    bank,
    decoder,
    level_decoder,
    open_tiny,
    photo,
    seer,
    tags,
)

CONFIG = {
    "name": "tiny",
    "encoder": "efficientnet-lite0",
    "input_px": 448,
    "detector": True,
    "class_names": False,
    "gap": "memory",
    "temperature": 0.02,
    "writers": {"zero-shot": "decoder", "paired": "decoder-paired"},
    "blend": {"whole": 0.1, "region": 1.5},
    "least_similarity": 0.5,
    "least_grounding": 0.2,
    "beams": 3,
}


def test_one_look_serves_every_question() -> None:
    tiny = seer()
    look = tiny.look(photo())
    assert [one.text for one in look.captions([Box(*LEFT), Box(*TOP_RIGHT), Box(*BOTTOM_RIGHT)])] == [
        "a cat",
        "a dog",
        "a cup",
    ]
    assert look.caption(Trace([(0.6, 0.9, 0.0), (0.9, 0.9, 1.0)])).text == "a cup"
    look.ground("a cat")
    look.narrate()
    assert tiny.eyes.encoder.looks == 1
    assert look.captions([]) == []


def test_one_caption_is_a_batch_of_one_and_the_whole_photo_by_default() -> None:
    look = seer().look(photo())
    assert look.caption() == look.captions([WholeImage()])[0]
    assert look.caption(Box(*LEFT)) == look.captions([WholeImage(), Box(*LEFT)])[1]


@pytest.mark.parametrize("gap", [None, MemoryGap(bank(), 0.01)])
def test_a_caption_tells_how_near_the_nearest_sentence_is_and_whether_that_will_do(gap: MemoryGap | None) -> None:
    look = seer(gap).look(photo())
    whole, left = look.captions([WholeImage(), Box(*LEFT)])
    # The whole is two parts cat, one part dog and one part cup.
    assert whole.similarity == pytest.approx(2 / np.sqrt(6), abs=1e-3)
    assert left.similarity == pytest.approx(1, abs=1e-3)
    assert (whole.sure, left.sure) == (False, True)
    assert (str(whole), str(left)) == ("a cat (unsure)", "a cat")
    assert whole.nearest[0].sentence == "a red cat"
    assert len(whole.nearest) == 3


def test_how_to_write_reaches_the_writer() -> None:
    tiny = seer()
    tiny.look(photo()).caption(how=GenerationConfig("beam", beams=7))
    assert tiny.writer.objects.decoder.asked[-1].beams == 7


REGIONS = (
    WholeImage(),
    BoxSet((Box(*LEFT), Box(*TOP_RIGHT))),
    Box(0, 0, 1, 1),
    Box(*LEFT),
    Point(0.9, 0.1),
    Trace([(0.6, 0.9, 0.0), (0.9, 0.9, 1.0)]),
)
SCENES = (0, 1)


@given(st.lists(st.integers(0, len(REGIONS) - 1), min_size=1, max_size=6))
def test_scenes_are_written_by_consensus_and_other_regions_are_not_in_any_order_and_number(
    numbers: list[int],
) -> None:
    tiny = agreeing_seer()
    look = tiny.look(photo())
    careful, plain = (
        [look.caption(one, how) for one in REGIONS] for how in (tiny.writer.objects.scenes, GenerationConfig())
    )
    assert all(one.text != other.text for one, other in zip(careful[:3], plain[:3], strict=True))
    said = look.captions([REGIONS[number] for number in numbers])
    assert len(said) == len(numbers)
    for number, caption in zip(numbers, said, strict=True):
        expected = (careful if number in SCENES else plain)[number]
        assert (caption.text, caption.nearest[0].sentence) == (expected.text, expected.nearest[0].sentence)
        assert caption.similarity == pytest.approx(expected.similarity, abs=1e-5)


def test_how_to_write_if_it_is_said_holds_for_the_whole_photo_too() -> None:
    look = agreeing_seer().look(photo())
    plain = attentive_decoder().write(MemoryGap(bank(), 0.1).close(look.aligned.vectors([WholeImage()])).vectors)
    assert look.caption(how=GenerationConfig()).text == plain[0].text


def test_the_consensus_is_among_two_careful_texts_and_those_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny, way = agreeing_seer(), ConsensusConfig(2, 6, temperature=2.0, nearest=2, softness=0.1, min_words=2)
    look = tiny.look(photo())
    vectors = look.aligned.vectors([WholeImage(), Box(*TOP_RIGHT)])
    closed, writer = tiny.writer.objects.gap.close(vectors).vectors, attentive_decoder()
    candidates = [
        [one.text for one in (first, second, *drawn)]
        for first, second, drawn in zip(
            writer.write(closed, way.careful),
            writer.write(vectors, way.careful),
            writer.draw(closed, 6, way.drawing),
            strict=True,
        )
    ]
    assert min(len(set(texts)) for texts in candidates) > 3
    assert any(first != second for first, second, *_ in candidates)
    heard = bank().project(vectors, nearest=2).nearest
    best = [
        consensus(texts, near, InverseFrequency(SENTENCES), 0.1, 0.3)
        for texts, near in zip(candidates, heard, strict=True)
    ]
    expected = [texts[number] for texts, number in zip(candidates, best, strict=True)]
    asked: list[list[str]] = []

    def remembering(
        texts: list[str], near: list[Nearest], rarity: InverseFrequency, softness: float, among: float
    ) -> int:
        asked.append(texts)
        return consensus(texts, near, rarity, softness, among)

    monkeypatch.setattr("saywhere.models.patchioner.writers.consensus", remembering)
    assert [one.text for one in look.captions([WholeImage(), Box(*TOP_RIGHT)], way)] == expected
    assert asked == candidates
    assert [one.text for one in tiny.writer.write(vectors, way)[0]] == expected


def test_sentences_read_as_queries_are_asked_for_whole_photos_and_the_others_for_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiny, way = agreeing_seer(), ConsensusConfig(2, 2, nearest=1, min_words=1)
    heard: list[str] = []

    def remembering(texts: list[str], near: list[Nearest], *_: object) -> int:
        heard.append(near[0].sentence)
        return 0

    monkeypatch.setattr("saywhere.models.patchioner.writers.consensus", remembering)
    look, regions = tiny.look(photo()), [WholeImage(), Box(*TOP_RIGHT)]
    look.captions(regions, way)
    bank = tiny.writer.bank.with_queries(np.roll(tiny.writer.bank.vectors, 1, axis=0))
    tiny.writer.bank = bank
    look.captions(regions, way)
    assert bank.queries is not None
    assert heard[2] == bank.queries.project(look.aligned.contrast()[None]).nearest[0][0].sentence
    assert heard[2] != heard[0]
    assert heard[3] == heard[1]


def test_consensus_needs_a_writer_that_can_draw() -> None:
    with pytest.raises(InvalidValue, match="not a ThingWriter"):
        seer().look(photo()).caption(how=ConsensusConfig())


def test_a_text_is_found_word_by_word_with_a_trace_through_its_boxes() -> None:
    look = seer().look(photo(), "7")
    grounded = look.grounded("A cat beside a dog and a unicorn")
    boxes = grounded.boxes.boxes_xyxy
    np.testing.assert_allclose(boxes[:3], [LEFT] * 3)
    np.testing.assert_allclose(boxes[3:], [TOP_RIGHT] * 5)
    narrative = look.ground("A cat beside a dog and a unicorn")
    assert (narrative.image_id, narrative.origin, narrative.caption) == ("7", "tiny", grounded.text)
    covered = narrative.word_boxes().boxes_xyxy[1]
    assert covered == pytest.approx(LEFT, abs=0.02)


def test_one_thing_is_found_where_the_detector_found_it_or_where_it_looks_alike_or_not_at_all() -> None:
    look = seer(found=[Found(TOP_RIGHT, "cat", 0.9)]).look(photo())
    cat, cup = look.find("a cat"), look.find("a blue cup")
    assert cat is not None
    assert cup is not None
    assert (cat.box_xyxy, cat.thing) == (TOP_RIGHT, "cat")
    assert (cup.box_xyxy, cup.thing) == (BOTTOM_RIGHT, "")
    assert look.find("a unicorn") is None
    with pytest.raises(InvalidValue, match="has no word"):
        look.find(" ")


def test_a_known_kind_that_the_detector_did_not_surely_find_must_be_more_alike() -> None:
    unsure = [Found(LEFT, "cat", 0.07)]
    assert seer(least_missed=0.9, found=unsure).look(photo()).find("a cat") is not None
    strict = seer(least_missed=1.1, found=unsure).look(photo())
    assert strict.find("a cat") is None
    assert not strict.grounded("A cat").boxes.located.any()
    # The same vector, but nothing that the detector could have found.
    assert strict.find("a catkin") is not None
    # What it surely found needs no likeness at all.
    assert seer(least_missed=1.1, least_grounding=1.1).look(photo()).find("a cat") is not None


def test_what_is_not_there_has_no_place_and_no_trace() -> None:
    narrative = seer().look(photo()).ground("a unicorn")
    assert len(narrative.trace) == 0
    assert [word.text for word in narrative.words] == ["a", "unicorn"]


@pytest.mark.parametrize(
    ("text", "reason"), [("", "has no word"), (" \n", "has no word"), ("cat " * 2001, "2,001 words")]
)
def test_a_text_without_words_or_with_too_many_is_a_clear_error(text: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        seer().look(photo()).ground(text)


def test_a_narrative_tells_the_whole_and_then_what_that_did_not_name() -> None:
    narrative = seer().look(photo()).narrate()
    assert narrative.caption == "A cat. We can see a dog at the top right. There is a cup at the bottom right."
    assert len(narrative.trace) > 0
    last = narrative.word_boxes().boxes_xyxy[-1]
    assert last == pytest.approx(BOTTOM_RIGHT, abs=0.02)
    shorter = seer().look(photo()).narrate(most=2)
    assert shorter.caption == "A cat. We can see a dog at the top right."
    with pytest.raises(InvalidValue, match="not at least 0"):
        seer().look(photo()).narrate(-1)


def test_a_map_says_where_a_text_is_and_is_even_where_all_looks_the_same() -> None:
    values = seer().look(photo()).similarity("cat").values
    np.testing.assert_allclose(values, [[1, 1, 0, 0]] * 4, atol=1e-6)
    plain = seer().look(Image.new("RGB", (9, 9), "red")).similarity("cat").values
    assert len(np.unique(plain)) == 1


@pytest.mark.parametrize("size", [(1, 1), (2000, 3)])
def test_photos_of_any_shape_are_looked_at(size: tuple[int, int]) -> None:
    look = seer().look(Image.new("RGB", size, "blue"))
    assert look.caption(Box(0, 0, 0.1, 0.1)).text == "a cup"
    assert look.ground("a cup").trace.bounds_xyxy == pytest.approx((0, 0, 1, 1), abs=0.5)


def test_an_image_is_named_after_its_file_or_as_told(tmp_path: Path) -> None:
    photo().save(tmp_path / "kitchen.png")
    assert seer().look(tmp_path / "kitchen.png").image_id == "kitchen"
    assert seer().look(str(tmp_path / "kitchen.png"), "12").image_id == "12"
    assert seer().look(photo()).image_id == "photo"


def test_a_view_made_before_gives_the_same() -> None:
    tiny = seer()
    look = tiny.look(photo())
    again = tiny.see(look.view)
    assert again.caption() == look.caption()
    assert again.image is None


def test_a_detector_without_tags_is_refused() -> None:
    with pytest.raises(InvalidValue, match="come together"):
        EncoderEyes(ColourEncoder(), alignment(), detector=ThingFinder())


class TextEyes:
    """Eyes that need no alignment: patches are vectors of texts already, and things are found on the way."""

    size = 3

    def look(self, photo: Image.Image) -> View:
        seen = ColourEncoder().look(photo)
        return View(seen.frame, seen.patches, seen.whole, found=[Found(LEFT, "cat", 0.9)], present={"cat": 0.9})

    def align(self, view: View) -> AlignedView:
        return AlignedView(view)

    def texts(self, vectors: np.ndarray) -> np.ndarray:
        return vectors


class StateWriter:
    """A writer that reads the photo itself rather than a vector of the region."""

    levels, generation = ("object",), GenerationConfig()

    def captions(
        self, seen: AlignedView, regions: Sequence[Region], how: object = None, level: str = "object"
    ) -> list[Caption]:
        return [Caption(f"{seen.view.found[0].name} in {region.name}", -0.1, region) for region in regions]


def test_eyes_and_writer_of_another_kind_serve_every_question_of_a_look() -> None:
    made = Seer(TextEyes(), StateWriter(), OptionalParts(ThingReader), GroundingConfig(0.7, 0.9), "other")
    look = made.look(photo())
    assert [str(one) for one in look.captions([Box(*LEFT), WholeImage()])] == [
        "cat in box 0,0,0.5,1",
        "cat in whole photo",
    ]
    assert {one.origin for one in look.captions([WholeImage()])} == {"other"}
    np.testing.assert_allclose(look.aligned.vectors([Box(*TOP_RIGHT)]), [[0, 1, 0]], atol=1e-6)
    np.testing.assert_allclose(look.grounded("a cat").boxes.boxes_xyxy, [LEFT, LEFT])
    assert look.find("a blue cup") is not None
    assert look.narrate().caption == "Cat in whole photo."
    with pytest.raises(InvalidValue, match="words of a StateWriter cannot be explained"):
        look.word_score(WholeImage(), "a cat", 0)


def test_parts_that_nobody_asks_for_are_not_opened() -> None:
    opened: list[str] = []

    def reader() -> ThingReader:
        opened.append("text encoder")
        return ThingReader()

    tiny = seer(level_writer=VectorWriter(level_decoder()))
    tiny.parts = OptionalParts(reader, lambda: pytest.fail("the answerer was opened"))
    look = tiny.look(photo())
    look.captions([WholeImage()])
    assert (opened, "above" in vars(tiny.writer)) == ([], False)
    look.ground("a cat")
    look.ground("a dog")
    look.scene()
    assert (opened, "above" in vars(tiny.writer)) == (["text encoder"], True)
    assert "answer" in tiny.skills


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "seer"
    alignment().save_pretrained(root / "alignment")
    tags().save_pretrained(root / "tags")
    bank().save(root / "memory.safetensors")
    decoder(0).save_pretrained(root / "decoder")
    decoder(1).save_pretrained(root / "decoder-paired")
    save_config(root, CONFIG)
    return root


def test_a_seer_opens_from_its_folder_with_any_of_its_writers(folder: Path) -> None:
    opened = {writer: open_tiny(folder, writer) for writer in ("", "paired")}
    assert [one.name for one in opened.values()] == ["tiny", "tiny:paired"]
    blend = opened[""].eyes.blend
    assert opened[""].generation == GenerationConfig("beam", beams=3)
    assert (blend.whole, blend.region, blend.classes) == (0.1, 1.5, 0.0)
    whole = opened[""].look(photo()).caption()
    [expected] = decoder(0).write(
        MemoryGap(bank(), 0.02).close(opened[""].look(photo()).aligned.vectors([WholeImage()])).vectors,
        GenerationConfig("beam", beams=3),
    )
    assert whole.text == expected.text
    assert any(
        not torch.equal(a, b)
        for a, b in zip(*(one.writer.objects.decoder.parameters() for one in opened.values()), strict=True)
    )
    with pytest.raises(UnknownName, match="Did you mean 'paired'"):
        open_tiny(folder, "pared")


def test_eyes_with_another_part_or_used_in_another_way_have_another_fingerprint(folder: Path) -> None:
    own = open_tiny(folder).eyes.fingerprint
    assert own.keys() == {"encoder", "alignment", "tags", "settings"}
    assert open_tiny(folder, "paired").eyes.fingerprint == own
    save_config(folder, CONFIG | {"blend": {"whole": 0.7}})
    (folder / "tags" / "config.json").write_bytes((folder / "tags" / "config.json").read_bytes() + b"\n")
    other = open_tiny(folder).eyes.fingerprint
    assert {part for part in own if own[part] != other[part]} == {"tags", "settings"}


def test_class_names_need_an_encoder_with_a_classifier(folder: Path) -> None:
    save_part(folder / "classes", "patchioner-class-names", {}, {"vectors": torch.eye(3)})
    save_config(folder, CONFIG | {"class_names": True})
    with pytest.raises(InvalidValue, match="has no classifier"):
        open_tiny(folder)
    encoder = ColourEncoder()
    weight, bias = np.arange(9, dtype=np.float32).reshape(3, 3), np.arange(3, dtype=np.float32)
    encoder.classifier = (weight, bias)  # type: ignore[attr-defined]
    opened = open_tiny(folder, encoder=encoder)
    assert opened.eyes.classes is not None
    np.testing.assert_array_equal(opened.eyes.classes.weight, weight)
    np.testing.assert_array_equal(opened.eyes.classes.bias, bias)
    np.testing.assert_array_equal(opened.eyes.classes.vectors, np.eye(3))


def test_a_folder_says_how_whole_photos_are_written_and_how_alike_missed_things_must_be(folder: Path) -> None:
    opened = open_tiny(folder)
    own = opened.writer.objects
    assert (opened.writer.least_similarity, opened.grounding) == (0.5, GroundingConfig(0.2, 0.0))
    assert (own.generation, own.scenes) == (GenerationConfig("beam", beams=3), None)
    save_config(folder, CONFIG | {"draws": 4, "no_repeat": 2, "least_missed": 0.6})
    opened = open_tiny(folder)
    own = opened.writer.objects
    assert opened.grounding == GroundingConfig(0.2, 0.6)
    assert own.generation == GenerationConfig("beam", beams=3, no_repeat=2)
    assert own.scenes == ConsensusConfig(3, 4, no_repeat=2)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gap": "memry"}, "Did you mean 'memory'"),
        ({"writers": {}}, "there are none"),
        ({"blend": {"hole": 1.0}}, "Did you mean 'whole'"),
        ({"blend": {"doubt": 0.0}}, "not above 0"),
        ({"extra": 1}, "unknown field"),
        ({"input_px": "448"}, "Expected `int`"),
    ],
)
def test_a_wrong_description_is_a_clear_error(folder: Path, change: dict[str, object], reason: str) -> None:
    (folder / "seer.json").write_text(json.dumps(CONFIG | change))
    with pytest.raises(InvalidFile, match=reason):
        read_config(folder)


def test_a_missing_description_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"seer\.json: cannot be opened"):
        read_config(tmp_path)


def test_a_caption_that_names_what_is_hardly_there_is_unsure_and_of_several_another_is_chosen() -> None:
    found = (Found(LEFT, "cat", 0.9), Found(TOP_RIGHT, "dog", 0.1))
    tiny = seer(least_similarity=0.0, found=found)
    tiny.writer.least_presence = 0.3
    look = tiny.look(photo())
    assert (look.aligned.presence("cat"), look.aligned.presence("dog"), look.aligned.presence("cup")) == (0.9, 0.1, 0)
    assert look.aligned.presence("zebra crossing") == 1
    cat, dog = look.captions([Box(*LEFT), Box(*TOP_RIGHT)])
    assert (cat.text, cat.sure, dog.text, dog.sure) == ("a cat", True, "a dog", False)


def test_a_region_is_not_called_by_a_kind_that_is_hardly_in_the_photo() -> None:
    tiny = seer(least_similarity=0.0, found=(Found(LEFT, "cat", 0.9), Found(TOP_RIGHT, "dog", 0.05)))
    tiny.writer.least_presence = 0.3
    # The nearest phrase of the memory is about the dog, too; the next is not.
    assert tiny.look(photo()).caption(Box(*TOP_RIGHT)).text in {"a red cat", "a blue cup"}


def test_a_region_is_not_called_by_a_kind_that_it_hardly_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = seer(least_similarity=0.0, found=(Found(LEFT, "cat", 0.9), Found(TOP_RIGHT, "dog", 0.9)))
    look, corner = tiny.look(photo()), Box(*TOP_RIGHT)
    assert (look.caption(corner).text, look.caption(corner).sure) == ("a dog", True)
    monkeypatch.setattr(AlignedView, "unlikely", lambda _self, _region, kinds: kinds & {"dog"})
    assert look.caption(corner).text in {"a red cat", "a blue cup"}
    # With no other phrase at hand the text stays, and is told to be unsure.
    monkeypatch.setattr(AlignedView, "unlikely", lambda _self, _region, kinds: set(kinds))
    kept = look.caption(corner)
    assert (kept.text, kept.sure) == ("a dog", False)


def test_of_captions_drawn_for_a_scene_one_is_kept_that_the_eyes_believe() -> None:
    way = ConsensusConfig(2, 6, temperature=2.0, nearest=2, softness=0.1, min_words=2)
    tiny = agreeing_seer()
    look = tiny.look(photo())
    vectors = look.aligned.vectors([WholeImage()])
    [free] = tiny.writer.write(vectors, way)[0]
    [believed] = tiny.writer.write(vectors, way, believable=lambda text: text != free.text)[0]
    assert believed.text != free.text
    # Where nothing is believed, something is said all the same, and told to be unsure.
    [anything] = tiny.writer.write(vectors, way, believable=lambda text: False)[0]
    assert anything.text == free.text


@pytest.mark.parametrize(
    ("text", "echoes"),
    [("a boy with a hat and a hat", True), ("a tower with a clock on it", False), ("cats and cats", True)],
)
def test_a_caption_that_says_a_thing_twice_in_a_row_is_known(text: str, echoes: bool) -> None:
    assert bool(_ECHO.search(text)) == echoes


def test_without_its_pixels_a_look_still_knows_that_it_is_of_no_photo() -> None:
    blank = seer().look(Image.new("RGB", (60, 60), "red"))
    assert blank.why_no_photo
    kept = blank.without_photo()
    assert (kept.image, kept.why_no_photo) == (None, blank.why_no_photo)
    assert not kept.caption(Box(0, 0, 0.5, 0.5)).sure
