"""`reproduce patchioner` on a made-up world of three colours, whose every answer is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
import typer
from PIL import Image
from typer.testing import CliRunner

from saywhere.build.region_texts import ClassBox
from saywhere.cli import reproduce as command
from saywhere.core import InvalidFile, InvalidValue
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.patchioner.decoder import DecoderConfig, PrefixDecoder
from saywhere.models.patchioner.eyes import EncoderEyes
from saywhere.models.patchioner.grounding import NounPhrase
from saywhere.models.patchioner.memory import Direct, MemoryGap
from saywhere.models.patchioner.seer import GroundingConfig, Seer, save_config
from saywhere.models.patchioner.writers import VectorWriter
from saywhere.models.search import GenerationConfig
from saywhere.reproduce.caption_metrics import CaptionMetrics
from saywhere.reproduce.patchioner import PHOTOS_PAGE, PatchionerExperiment
from saywhere.reproduce.patchioner_data import box_task, listed_photos, read_held_out
from saywhere.reproduce.patchioner_looks import (
    AS_MODEL,
    ATTENTION,
    DETECTED,
    FOUND,
    WHOLE,
    detected_places,
    look_at,
    remembering,
)
from saywhere.reproduce.patchioner_measure import (
    INSTEAD,
    NOTHING,
    OWN,
    SHIPPED,
    CaptionRows,
    Key,
    bridge_for,
    distances,
    gaps,
    memory_name,
    own_gap,
    recalls,
    references_of,
)
from saywhere.reproduce.results import Results
from saywhere.vision import Found, PhotoLike, View
from saywhere.vision.detector import Detected
from tests.models import patchioner_seeing as tiny

CAT, DOG, CUP = (COCO_CLASSES.index(name) for name in tiny.THINGS)
NAMES = tuple(f"{i:012d}" for i in (3, 1, 2))
# Left half a cat, a dog at the top right, a cup below it: as in `tiny.photo`.
BOXES = [[CAT, 0.25, 0.5, 0.5, 1.0], [DOG, 0.75, 0.25, 0.5, 0.5], [CUP, 0.75, 0.75, 0.5, 0.5]]


class NamedFinder(tiny.ThingFinder):
    """As a real detector, it says what it is and takes a least score."""

    fingerprint: dict[str, str | int] = {"detector": "things"}  # noqa: RUF012 - as the protocol has it

    def find(self, photo: Any, least_score: float = 0.0) -> Detected:
        sure = tuple(one for one in self.found if one.score >= least_score)
        return tiny.ThingFinder(sure).find(photo)


def a_seer(**changes: Any) -> Seer:
    seer = tiny.seer(**changes)
    seer.eyes = replace(seer.eyes, detector=NamedFinder())
    return seer


class EyeEncoder(tiny.ColourEncoder):
    """As an eye that learnt: the whole photo has a vector of its own, a cup's; people look at the dog; and there are
    hidden states."""

    fingerprint: dict[str, str | int] = {"encoder": "eye"}  # noqa: RUF012 - as the protocol has it

    def look(self, photo: PhotoLike) -> View:
        seen = super().look(photo)
        looked_at = np.full((4, 4), 0.01)
        looked_at[:2, 2:] = 1
        states = np.random.default_rng(int(seen.patches[0, 0].argmax())).normal(size=(1 + 16, 5))
        return View(seen.frame, seen.patches, [0, 0, 2], looked_at, (), states, [0, 1, 0])


class SecondLook:
    def look(self, photo: Image.Image) -> np.ndarray:
        return np.full((17, 2), photo.width, np.float32)


def an_attending_decoder() -> PrefixDecoder:
    words = Vocabulary.of_words(tiny.SENTENCES)
    shape = {"width": 8, "layers": 1, "heads": 2, "feed_forward": 8, "max_words": 5, "states_size": 5}
    decoder = PrefixDecoder.fresh(DecoderConfig(len(words), 3, **shape), words, 0).eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        for parameter in decoder.parameters():
            parameter.add_(torch.randn_like(parameter))
    return decoder


def a_seer_with_an_eye(decoder: Any = None) -> Seer:
    """One whose eye needs no alignment and looks twice. decoder: one that attends to photos, if any."""
    seer = tiny.seer(writer=None if decoder is None else VectorWriter(decoder), least_similarity=0.0)
    seer.eyes = EncoderEyes(EyeEncoder(), None, NamedFinder(), tiny.tags(), auxiliary=SecondLook)
    return seer


def quiet(doing: str, done: int, total: int) -> None:
    assert 0 <= done <= total, doing


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "coco"
    (folder / "photos").mkdir(parents=True)
    for name in NAMES:
        tiny.photo().save(folder / "photos" / f"{name}.png")
    images = [{"id": int(n), "file_name": f"{n}.png", "width": 400, "height": 400} for n in (*NAMES, "000000000009")]
    texts = ["a cat beside a dog", "a cat", "a cat and a cup", "one cat", "the cat"]
    annotations = [
        {"id": 10 * image["id"] + i, "image_id": image["id"], "caption": text}
        for image in images
        for i, text in enumerate(texts)
    ]
    (folder / "captions_val2017.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    (folder / "boxes.json").write_text(json.dumps(dict.fromkeys((*NAMES, "000000000009"), BOXES)))
    told = [("1_7", "a cat and a cup", "cat cat wall-tile cup cup"), ("2_7", "the sky", "sky-other sky-other")]
    for part, column in zip(("ids", "words", "cleaned_tags"), zip(*told, strict=True), strict=True):
        (folder / f"val_coco.{part}.txt").write_text("\n".join(column) + "\n")
    entities = {"1": {"a cat and a dog\ncat with dog": [[0, 0, 200, 400], [200, 0, 400, 200]], "nothing": []}}
    (tmp_path / "entities").mkdir()
    (tmp_path / "entities" / "coco_entities_test.json").write_text(json.dumps(entities))
    (tmp_path / "list.txt").write_text("\n".join((*NAMES, "000000000009")))
    return folder


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither Java nor a parser of English: this is about rows, not about those measures."""

    def enter(self: CaptionMetrics) -> CaptionMetrics:
        self.missing.append("Not measured: METEOR")
        return self

    monkeypatch.setattr(CaptionMetrics, "__enter__", enter)


def experiment(data: Path, seers: dict[str, Seer], **changes: Any) -> PatchionerExperiment:
    shape = {"bridge_steps": 2, "shown": 2, **changes}
    return PatchionerExperiment(seers=seers, data=data, photos=data.parent / "list.txt", **shape)


def run(data: Path, out: Path, seers: dict[str, Seer] | None = None) -> Results:
    return experiment(data, seers or {"zero-shot": a_seer(), "paired": a_seer()}).run(out, quiet)


# Data


def test_what_is_listed_is_kept_or_counted_as_left_out(data: Path) -> None:
    held = read_held_out(data, [*NAMES, "000000000009", "000000000777"], limit=2)
    assert list(held.photos) == list(NAMES[:2])
    counts = held.counts
    left = sum(value for name, value in counts.items() if name.startswith("listed"))
    assert counts["photos listed"] == 5 == counts["photos"] + left
    assert counts["listed, but not here"] == 2
    assert counts["listed, but beyond the limit"] == 1
    assert (counts["boxes"], counts["captions"]) == (6, 10)


def test_items_are_of_the_listed_photos_in_their_order(data: Path) -> None:
    held = read_held_out(data, NAMES)
    assert [item.image_id for item in held.images.items] == list(NAMES)
    assert [item.image_id for item in held.boxes.items] == [name for name in NAMES for _ in BOXES]
    assert [item.references for item in held.boxes.items][:3] == [("cat",), ("dog",), ("cup",)]


def test_only_narrations_with_a_pseudo_box_are_kept_and_the_others_counted(data: Path) -> None:
    held = read_held_out(data, NAMES)
    (narration,) = held.narrations
    assert narration.placed.located.tolist() == [True, True, False, True, True]
    assert held.counts["narrations"] == held.counts["narrations without a pseudo-box"] == 1


def test_captions_that_share_their_boxes_are_one_set_and_those_without_boxes_are_counted(data: Path) -> None:
    held = read_held_out(data, NAMES)
    assert held.sets is not None
    (item,) = held.sets.items
    assert (item.image_id, item.references) == ("000000000001", ("a cat and a dog", "cat with dog"))
    assert held.counts["captions of region sets"] == 2
    assert held.counts["captions of region sets, left out"] == 1


def test_without_entities_beside_the_folder_there_are_no_sets(data: Path) -> None:
    (data.parent / "entities" / "coco_entities_test.json").unlink()
    assert read_held_out(data, NAMES).sets is None


@pytest.mark.parametrize("missing", ["captions_val2017.json", "boxes.json", "val_coco.ids.txt", "val_coco.words.txt"])
def test_a_missing_file_is_named(data: Path, missing: str) -> None:
    (data / missing).unlink()
    with pytest.raises(InvalidFile, match=missing):
        read_held_out(data, NAMES)


def test_a_folder_without_photos_is_a_clear_error(tmp_path: Path, data: Path) -> None:
    with pytest.raises(InvalidFile, match="is not there"):
        read_held_out(tmp_path, NAMES)
    with pytest.raises(InvalidFile, match="none of the 1 listed photos"):
        read_held_out(data, ["000000000777"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [("12\n", "not the name of a photo"), ("", "names no photo"), ("000000000001\n000000000001\n", "twice")],
)
def test_a_bad_list_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "list.txt"
    path.write_text(content)
    with pytest.raises(InvalidFile, match=reason):
        listed_photos(path)


def test_the_package_lists_five_hundred_photos() -> None:
    assert len(listed_photos()) == 500


def test_boxes_of_one_photo_have_ids_of_their_own() -> None:
    boxes = [ClassBox("a", "cat", (0, 0, 1, 1)), ClassBox("b", "dog", (0, 0, 1, 1)), ClassBox("a", "cup", (0, 0, 1, 1))]
    assert [item.item_id for item in box_task(boxes).items] == ["a/0", "b/0", "a/1"]


# Looks


def test_every_photo_is_looked_at_once_and_in_a_second_run_not_at_all(data: Path, tmp_path: Path) -> None:
    held, seer = read_held_out(data, NAMES), a_seer()
    first = look_at(held, seer, tmp_path / "views", quiet)
    # All three photos have the same pixels, so one look serves them all.
    assert first.looks == 1
    second = look_at(held, seer, tmp_path / "views", quiet)
    assert second.looks == 0
    np.testing.assert_array_equal(first.boxes.vectors["touch"], second.boxes.vectors["touch"])


def test_vectors_are_those_that_the_seer_itself_gives(data: Path, tmp_path: Path) -> None:
    held, seer = read_held_out(data, NAMES), a_seer()
    asked = look_at(held, seer, tmp_path / "views", quiet)
    look = seer.look(held.photos[NAMES[0]])
    own = [item.region for item in held.boxes.items if item.image_id == NAMES[0]]
    np.testing.assert_allclose(asked.boxes.vectors["touch"][:3], look.aligned.vectors(own), atol=1e-6)
    assert asked.sets is not None
    assert asked.sets.vectors["patch"].shape == (1, 3)


def test_an_eye_without_an_alignment_has_its_own_vector_of_the_photo_and_its_attention(
    data: Path, tmp_path: Path
) -> None:
    held, seer = read_held_out(data, NAMES), a_seer_with_an_eye()
    asked = look_at(held, seer, tmp_path / "views", quiet)
    cat, dog, cup = np.eye(3)
    np.testing.assert_allclose(asked.images.vectors[AS_MODEL], [cup] * 3)
    np.testing.assert_allclose(asked.contrasts, [dog] * 3)
    assert [asked.images.vectors[way][0].argmax() for way in ("uniform", ATTENTION)] == [0, 1]
    # The cat's box holds no patch that people look at, but its patches are looked at equally.
    np.testing.assert_allclose(asked.boxes.vectors[ATTENTION][0], cat, atol=1e-6)
    assert (asked.states, asked.boxes.weights) == ({}, {})


def test_of_an_encoder_without_attention_there_are_no_rows_weighed_by_it(data: Path, tmp_path: Path) -> None:
    asked = look_at(read_held_out(data, NAMES), a_seer(), tmp_path / "views", quiet)
    assert ATTENTION not in asked.boxes.vectors
    np.testing.assert_allclose(asked.images.vectors[AS_MODEL], asked.images.vectors["uniform"], atol=1e-6)


def test_views_keep_the_second_look(data: Path, tmp_path: Path) -> None:
    seer = a_seer_with_an_eye()
    for looked in (1, 0):
        eye = remembering(seer, tmp_path / "views")
        second = eye.look(data / "photos" / f"{NAMES[0]}.png").auxiliary
        assert eye.looked == looked
        np.testing.assert_array_equal(second, SecondLook().look(tiny.photo()))


def test_classes_are_pointed_at_and_what_is_too_unlike_is_not(data: Path, tmp_path: Path) -> None:
    held = read_held_out(data, NAMES)
    pointed = look_at(held, a_seer(), tmp_path / "views", quiet).pointed
    assert set(pointed) == {(name, thing) for name in NAMES for thing in tiny.THINGS}
    assert pointed[NAMES[0], "dog"] == tiny.TOP_RIGHT
    # Of known kinds that the detector did not find, only what is like enough.
    blind = a_seer(least_missed=0.9)
    blind.eyes = replace(blind.eyes, detector=NamedFinder(()))
    assert look_at(held, blind, tmp_path / "blind", quiet).pointed[NAMES[0], "dog"] == tiny.TOP_RIGHT
    blind.grounding = GroundingConfig(least_missed=1.1)
    assert set(look_at(held, blind, tmp_path / "blind", quiet).pointed.values()) == {None}


def test_words_found_in_their_pseudo_boxes_are_at_distance_zero(data: Path, tmp_path: Path) -> None:
    held = read_held_out(data, NAMES)
    asked = look_at(held, a_seer(), tmp_path / "views", quiet)
    far = distances(asked.traced, held.narrations)
    assert far[FOUND].tolist() == far[DETECTED].tolist() == [0.0]
    # cat: 0.5 off in x2; cup: 0.5 off in x1 and y1; two words each, four coordinates.
    assert far[WHOLE][0] == pytest.approx((0.5 + 1.0) / 2 / 4)


def test_narrations_listed_in_another_order_than_their_photos_keep_their_own_traces(data: Path, tmp_path: Path) -> None:
    told = [("1_7", "a cup", "cup cup"), ("3_7", "a cat", "cat cat"), ("1_8", "a dog", "dog dog")]
    for part, column in zip(("ids", "words", "cleaned_tags"), zip(*told, strict=True), strict=True):
        (data / f"val_coco.{part}.txt").write_text("\n".join(column) + "\n")
    held = read_held_out(data, NAMES)
    assert list(held.photos)[:2] == ["000000000003", "000000000001"]
    assert [one.image_id[-1] for one in held.narrations] == ["1", "3", "1"]
    asked = look_at(held, a_seer(), tmp_path / "views", quiet)
    expected = [[box] * 2 for box in (tiny.BOTTOM_RIGHT, tiny.LEFT, tiny.TOP_RIGHT)]
    for who in (FOUND, DETECTED):
        np.testing.assert_allclose(asked.traced[who], expected)
    far = distances(asked.traced, held.narrations)
    assert far[FOUND].tolist() == far[DETECTED].tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(far[WHOLE], [1.0 / 4, 0.5 / 4, 1.0 / 4])


def test_the_surest_thing_of_the_class_that_a_phrase_names_is_its_place() -> None:
    found = (Found((0, 0, 1, 1), "cat", 0.2), Found((0, 0, 0.5, 1), "cat", 0.9), Found((0, 0, 0.1, 0.1), "dog", 1.0))
    phrases = [NounPhrase(0, 2, "black cat"), NounPhrase(3, 4, "sky")]
    ((phrase, place),) = detected_places(phrases, found)
    assert (phrase.text, place.box_xyxy, place.thing) == ("black cat", (0, 0, 0.5, 1), "cat")


def test_a_caption_finds_its_photo_by_the_nearest_vector(data: Path) -> None:
    held = read_held_out(data, NAMES)
    cat, dog = np.eye(3, dtype=np.float32)[:2]
    # Of five captions of each photo four name a cat and no dog; the first photo is a cat, the others are dogs.
    found = recalls(held, np.stack([cat, dog, dog]), a_seer(), quiet)
    # The first photo's five; of the others' the one that names both, equally like all photos.
    assert found["R@1"] == pytest.approx(100 * (5 + 2) / 15)
    assert found["R@5"] == 100.0


# Rows


@pytest.mark.parametrize(
    ("gap", "name"),
    [
        (Direct(), NOTHING),
        (MemoryGap(tiny.bank(), 0.02), memory_name(0.02)),
        (MemoryGap(tiny.bank(), 0.3), memory_name(0.3)),
        (MemoryGap(tiny.bank(), 0.02, top=2), SHIPPED),
    ],
)
def test_the_gap_that_a_seer_closes_is_among_the_rows(gap: Any, name: str) -> None:
    seer = a_seer(gap=gap)
    assert own_gap(seer) == name
    assert name in gaps(seer, None)


def answers(data: Path, tmp_path: Path, seer: Seer) -> CaptionRows:
    asked = look_at(read_held_out(data, NAMES), seer, tmp_path / "views", quiet)
    return CaptionRows(asked, {"one": seer}, gaps(seer, None), {}, quiet)


def test_captions_are_those_that_the_seer_itself_writes(data: Path, tmp_path: Path) -> None:
    seer = a_seer()
    made = answers(data, tmp_path, seer)
    look = seer.look(tiny.photo())
    regions = [item.region for item in made.looked.boxes.task.items[:3]]
    said = made.captions(Key("boxes", "one", NOTHING))
    assert [*said.values()][:3] == [one.text for one in look.captions(regions)] == ["a cat", "a dog", "a cup"]
    assert made.scores(Key("boxes", "one", NOTHING)) == {
        "names its class": 100.0,
        "names its class (non-person)": 100.0,
    }


def test_a_writer_that_attends_to_photos_reads_each_items_own_photo(data: Path, tmp_path: Path) -> None:
    seer = a_seer_with_an_eye(an_attending_decoder())
    tiny.photo().rotate(180).save(data / "photos" / f"{NAMES[1]}.png")
    held = read_held_out(data, NAMES)
    asked = look_at(held, seer, tmp_path / "views", quiet, with_states=True)
    made = CaptionRows(asked, {"one": seer}, gaps(seer, None), {}, quiet)
    looks = [seer.look(path) for path in held.photos.values()]
    regions = [item.region for item in asked.boxes.task.items[:3]]
    said = made.captions(Key("boxes", "one", NOTHING))
    assert [*said.values()] == [one.text for look in looks for one in look.captions(regions)]
    whole = [*made.captions(Key("images", "one", NOTHING)).values()]
    assert whole == [look.caption().text for look in looks]
    assert whole[0] != whole[1]


def test_writers_that_read_vectors_alone_come_first() -> None:
    looking, plain = a_seer_with_an_eye(an_attending_decoder()), a_seer_with_an_eye()
    made = experiment(Path("data"), {"looking": looking, "zero-shot": plain})
    assert made.plan()["writers"] == ["zero-shot", "looking"]


def test_the_whole_photos_caption_names_only_its_own_thing(data: Path, tmp_path: Path) -> None:
    made = answers(data, tmp_path, a_seer())
    key = Key("boxes", "one", NOTHING, INSTEAD)
    assert set(made.captions(key).values()) == {"a cat"}
    assert made.scores(key)["names its class"] == pytest.approx(100 / 3)
    values, photos = made.each(key, others=True)
    assert values.tolist() == [100.0, 0.0, 0.0] * 3
    assert photos == [name for name in NAMES for _ in BOXES]


def test_beams_are_asked_of_the_writer_and_nothing_is_written_twice(data: Path, tmp_path: Path) -> None:
    seer = a_seer()
    made = answers(data, tmp_path, seer)
    for way in ("", AS_MODEL):
        made.captions(Key("images", "one", NOTHING, way, beams=5))
    assert seer.writer.objects.decoder.asked == [GenerationConfig("beam", beams=5)]


def test_as_shipped_words_are_chosen_as_the_seer_itself_does(data: Path, tmp_path: Path) -> None:
    seer = a_seer()
    seer.writer.objects = replace(seer.writer.objects, generation=GenerationConfig("beam", beams=3, no_repeat=2))
    made = answers(data, tmp_path, seer)
    made.captions(Key("images", "one", NOTHING, beams=OWN))
    assert seer.writer.objects.decoder.asked == [seer.generation]


def test_as_shipped_photos_and_sets_are_written_by_consensus_and_boxes_are_not(data: Path, tmp_path: Path) -> None:
    seer = tiny.agreeing_seer()
    seer.eyes = replace(seer.eyes, detector=NamedFinder())
    made = answers(data, tmp_path, seer)
    look, gap = seer.look(tiny.photo()), own_gap(seer)
    careful, plain = look.caption().text, look.caption(how=GenerationConfig()).text
    assert careful != plain
    assert set(made.captions(Key("images", "one", gap, beams=OWN)).values()) == {careful}
    assert set(made.captions(Key("images", "one", gap)).values()) == {plain}
    regions = [item.region for item in made.looked.boxes.task.items[:3]]
    said = made.captions(Key("boxes", "one", gap, beams=OWN))
    assert [*said.values()][:3] == [one.text for one in look.captions(regions)]
    assert made.looked.sets is not None
    scene = look.captions([item.region for item in made.looked.sets.task.items])
    assert [*made.captions(Key("sets", "one", gap, beams=OWN)).values()] == [one.text for one in scene]


def test_a_bridge_is_learnt_once_and_learnt_anew_for_another_memory(data: Path, tmp_path: Path) -> None:
    seer = a_seer()
    asked = look_at(read_held_out(data, NAMES), seer, tmp_path / "views", quiet)
    steps: list[int] = []

    def count(doing: str, done: int, total: int) -> None:
        steps.append(done)

    first = bridge_for(seer.writer.bank, asked, tmp_path / "bridge", 2, count)
    again = bridge_for(seer.writer.bank, asked, tmp_path / "bridge", 2, count)
    assert steps == [1, 2]
    np.testing.assert_array_equal(first.cross(np.eye(3)), again.cross(np.eye(3)))
    bridge_for(type(seer.writer.bank)(np.eye(3)[::-1], tiny.SENTENCES), asked, tmp_path / "bridge", 2, count)
    assert steps == [1, 2, 1, 2]


def test_references_are_those_of_the_items(data: Path, tmp_path: Path) -> None:
    made = answers(data, tmp_path, a_seer())
    assert references_of(made.looked.boxes)[f"{NAMES[0]}/1"] == ["dog"]


# The whole


@pytest.mark.usefixtures("no_tools")
def test_a_whole_run_writes_tables_claims_and_pages(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    results = run(data, out)
    assert sorted({table.number for table in results.tables}) == [0, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17]
    boxes = next(table for table in results.tables if table.number == 10 and "true boxes" in table.title)
    assert len(boxes.rows) == 2 * 6
    assert boxes.rows[0].mean("names its class") == 100.0
    verdicts = {claim.text: claim.verdict for claim in results.claims}
    assert (
        verdicts["Patches of the region say more about it than the whole photo: true boxes (Tables 2 and 8)"] == "held"
    )
    assert verdicts["A memory helps beyond noise alone: true boxes (Table 10)"] == "undecided"
    assert "Not measured: METEOR" in results.remarks
    for name in ("report.html", "report.md", "numbers.json", PHOTOS_PAGE):
        assert (out / name).stat().st_size > 0
    captions = msgspec.json.decode((out / "captions.json").read_bytes())
    assert captions["boxes, touch, nothing, zero-shot, greedy"][f"{NAMES[0]}/0"] == "a cat"
    page = (out / PHOTOS_PAGE).read_text(encoding="utf-8")
    assert page.count("a dog (true class: dog)") == 2
    pointing = next(table for table in results.tables if table.number == 15)
    assert pointing.rows[0].mean("pointing") == 100.0


@pytest.mark.usefixtures("no_tools")
def test_a_whole_run_with_an_eye_has_rows_by_attention_and_claims_about_the_text_only_writer(
    data: Path, tmp_path: Path
) -> None:
    seers = {"looking": a_seer_with_an_eye(an_attending_decoder()), "zero-shot": a_seer_with_an_eye()}
    results = run(data, tmp_path / "out", seers)
    weighing = {table.number: table for table in results.tables if table.title.startswith("Weighing")}
    assert all("zero-shot writer" in table.title for table in weighing.values())
    assert all(ATTENTION in [row.name for row in table.rows] for table in weighing.values())
    assert [row.name for row in weighing[9].rows][:2] == [AS_MODEL, "uniform"]
    assert any("attention say more" in claim.text for claim in results.claims)


@pytest.mark.usefixtures("no_tools")
def test_a_run_without_entities_or_bridge_says_what_is_left_out(data: Path, tmp_path: Path) -> None:
    (data.parent / "entities" / "coco_entities_test.json").unlink()
    short = experiment(data, {"zero-shot": a_seer()}, bridge_steps=0, shown=0)
    results = short.run(tmp_path / "out", quiet)
    assert any("no entities" in remark for remark in results.remarks)
    assert not any("bridge" in row.name for table in results.tables for row in table.rows)
    assert not (tmp_path / "out" / "bridge").exists()


@pytest.mark.usefixtures("no_tools")
def test_the_command_says_each_verdict_and_where_the_report_is(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "open_writers", lambda model: {model: a_seer()})
    app = typer.Typer()
    app.command()(command.patchioner)
    arguments = ["--data", str(data), "--photos", str(data.parent / "list.txt"), "--limit", "2", "--quick"]
    monkeypatch.setattr("saywhere.reproduce.patchioner._QUICK_BRIDGE_STEPS", 0)
    told = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out"), "--model", "tiny"])
    assert told.exit_code == 0, told.output
    numbers = json.loads((tmp_path / "out" / "numbers.json").read_bytes())
    assert numbers["settings"]["writers"] == ["tiny"]
    assert numbers["settings"]["data"]["photos"] == 2
    assert all(claim["text"] in told.output for claim in numbers["claims"])
    assert "report.html" in told.output


def test_a_model_gives_one_seer_for_each_writer_with_the_same_eyes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers = {"zero-shot": "decoder", "paired": "decoder-paired"}
    blend = {"whole": 0.0, "region": 0.0, "classes": 0.0}
    about = {"name": "tiny", "encoder": "colours", "input_px": 4, "detector": False, "class_names": False}
    thresholds = {"least_similarity": 0.0, "least_grounding": 0.0}
    save_config(
        tmp_path, {**about, **thresholds, "gap": "direct", "temperature": 0.02, "writers": writers, "blend": blend}
    )
    tiny.alignment().save_pretrained(tmp_path / "alignment")
    tiny.bank().save(tmp_path / "memory.safetensors")
    for seed, folder in enumerate(writers.values()):
        tiny.decoder(seed).save_pretrained(tmp_path / folder)
    monkeypatch.setattr("saywhere.vision.open_encoder", lambda name, px: tiny.ColourEncoder())
    opened = command.open_writers(str(tmp_path))
    assert list(opened) == ["zero-shot", "paired"]
    assert opened["zero-shot"].eyes is opened["paired"].eyes
    assert opened["zero-shot"].writer is not opened["paired"].writer
    assert list(command.open_writers(f"{tmp_path}:paired")) == ["paired"]


@pytest.mark.usefixtures("no_tools")
def test_a_photo_that_cannot_be_read_ends_the_run_and_is_named(data: Path, tmp_path: Path) -> None:
    (data / "photos" / f"{NAMES[1]}.png").write_bytes(b"no photo")
    with pytest.raises(InvalidFile, match=NAMES[1]):
        run(data, tmp_path / "out")
    assert not (tmp_path / "out" / "report.html").exists()


def test_a_run_without_writers_or_into_a_file_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="none"):
        experiment(data, {})
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFile, match="not a folder"):
        run(data, tmp_path / "file")


@pytest.mark.parametrize("changes", [{"limit": 0}, {"shown": -1}, {"bridge_steps": -1}])
def test_a_plan_of_nothing_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(InvalidValue):
        experiment(Path("data"), {"one": a_seer()}, **changes)


def test_the_photo_of_the_made_up_world_is_what_the_boxes_say() -> None:
    pixels = np.asarray(tiny.photo().resize((4, 4), Image.Resampling.BOX))
    assert pixels[0, 0].argmax() == 0
    assert pixels[0, 3].argmax() == 1
    assert pixels[3, 3].argmax() == 2
