"""HINT on people's questions, with made-up photos and questions: the split, what is looked at, and the whole run."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from saywhere.build.coco import FIELDS, KIND
from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.models.answerer.data import PLACES_FIELDS
from saywhere.models.patchioner.answering import state_places
from saywhere.models.region_features import REGIONS, RegionFeatures
from saywhere.models.updown import PreparedQuestion, Questions
from saywhere.reproduce import hint_rows as rows
from saywhere.reproduce.hint_tuning import VQA, HintScale
from saywhere.reproduce.hint_vqa import SECTION, HintVqaExperiment
from saywhere.reproduce.hint_vqa_data import PrincipalPlaces, VqaPhotos, peoples_questions, prepare_vqa_photos
from saywhere.store import Store, StoreWriter
from saywhere.vision.things import NamedThings

_PHOTOS, _SIZE, _SIDE = 240, 6, 4
_DOG, _CAT = (0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 1.0, 1.0)
SCALE = VqaPhotos(odds=3.0, answer_types=("yes/no", "other"), directions=4, least_count=2)
SMALL = HintScale(*(4, 2e-3, 2, 1e-3, 8, 8, 6, 0.0, (0.1, 0.3)), explained=10, faithful=5, trained=20)


def quiet(what: str, done: int, total: int) -> None:
    pass


def _question(number: int | str, text: str, kind: str, answer: str) -> dict[str, object]:
    answer_type = "yes/no" if answer in ("yes", "no") else "other"
    about = {"question_type": kind, "answer_type": answer_type, "split": "train"}
    return {"id": number, "question": text, "answer": answer, "answers": [answer] * 10, **about}


def _places(rng: np.random.Generator, *, again: bool = False, nothing: bool = False) -> RegionFeatures:
    """A dog and a cat, and 4 × 4 windows. again: there was a second look. nothing: nothing was found."""
    vectors, boxes = rng.normal(size=(2, _SIZE)), np.array([_DOG, _CAT])
    found = NamedThings(vectors.astype(np.float32), boxes.astype(np.float32), np.array([0.9, 0.5], np.float32))
    states = rng.normal(size=(1 + _SIDE**2, _SIZE)).astype(np.float32)
    second = rng.normal(size=(1 + 2**2, _SIZE)).astype(np.float32) if again else None
    return state_places(rng.normal(size=_SIZE).astype(np.float32), states, None if nothing else found, second)


def _store(folder: Path, *photos: RegionFeatures) -> Store:
    with StoreWriter(folder, REGIONS, PLACES_FIELDS, {}) as writer:
        for number, places in enumerate(photos):
            writer.add(f"{number:012}", regions=places.features, boxes=places.boxes_xyxy)
    return Store(folder)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Every photo shows a dog and a cat; every other one has a map of people who look at the cat."""
    folder, rng = tmp_path_factory.mktemp("vqa"), np.random.default_rng(0)
    jpeg = BytesIO()
    Image.new("RGB", (32, 24), "teal").save(jpeg, "JPEG")
    looks = np.zeros((32, 32), np.uint8)
    looks[16:, 16:] = 255
    with (
        StoreWriter(folder / "coco", KIND, FIELDS, {}) as coco,
        StoreWriter(folder / "places", REGIONS, PLACES_FIELDS, {}) as places,
    ):
        for number in range(_PHOTOS):
            asked = [
                _question(2 * number, "Is the dog asleep?", "is the", "yes" if number % 5 < 3 else "no"),
                _question(2 * number + 1, "What is it?", "what is", "cat" if number % 2 else "fog"),
            ]
            looked = {"saliency": looks} if number % 2 else {}
            classes = [COCO_CLASSES.index("dog"), COCO_CLASSES.index("cat")]
            told = {"boxes_xyxy": [_DOG, _CAT], "classes": classes, "questions": asked}
            coco.add(f"{number:012}", jpeg=jpeg.getvalue(), **told, **looked)
            seen = _places(rng)
            places.add(f"{number:012}", regions=seen.features, boxes=seen.boxes_xyxy)
    return folder / "coco", folder / "places"


@pytest.fixture(scope="module")
def questions(stores: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Questions:
    folder = tmp_path_factory.mktemp("data")
    prepare_vqa_photos(folder, *stores, SCALE, quiet)
    return Questions(folder / "questions")


def _split(questions: Questions, name: str) -> list[PreparedQuestion]:
    return [questions.question(index) for index in questions.indices(name)]


def _best(importance: NDArray[Any] | None) -> int:
    assert importance is not None
    return int(np.nanargmax(importance))


def test_priors_turn_round_and_no_photo_is_on_two_sides(questions: Questions) -> None:
    shares = {}
    for name in questions.splits:
        said = Counter(one.answers[0] for one in _split(questions, name) if one.question_type == "is the")
        shares[name] = said["yes"] / said.total()
    assert shares["train"] == pytest.approx(0.75, abs=0.05)
    assert shares["same"] == pytest.approx(0.75, abs=0.12)
    assert shares["changed"] == pytest.approx(0.25, abs=0.12)
    assert shares["development"] == pytest.approx(0.25, abs=0.15)
    assert shares["balanced"] == pytest.approx(0.5, abs=0.03)
    sides = {name: {one.image for one in _split(questions, name)} for name in questions.splits}
    for one, images in sides.items():
        for other in set(sides) - {one}:
            assert {one, other} == {"train", "balanced"} or not images & sides[other]
    assert questions.splits["balanced"] <= questions.splits["train"]


def test_only_questions_with_answers_of_the_wanted_types_are_kept(stores: tuple[Path, Path], tmp_path: Path) -> None:
    prepare_vqa_photos(tmp_path, *stores, replace(SCALE, answer_types=("other",)), quiet)
    kept = Questions(tmp_path / "questions")
    assert {one.answer_type for name in kept.splits for one in _split(kept, name)} == {"other"}


def test_questions_of_other_sets_are_left_out_and_ids_may_be_texts(tmp_path: Path) -> None:
    asked = [
        _question("1", "Is the dog asleep?", "is the", "yes"),
        {**_question("vsr 3", "Is the dog under the table?", "is", "yes"), "source": "vsr"},
        {**_question(1, "What breed is the dog?", "what is", "poodle"), "source": "okvqa"},
        {**_question(2, "What is it?", "what is", "dog"), "source": "vqa"},
    ]
    with StoreWriter(tmp_path / "coco", KIND, FIELDS, {}) as coco:
        coco.add("000000000001", jpeg=b"", questions=asked)
        coco.add("000000000002", jpeg=b"", questions=asked[1:3])
    told = {row.key: [one.id for one in peoples_questions(row)] for row in Store(tmp_path / "coco")}
    assert told == {"000000000001": ["1", 2], "000000000002": []}
    _store(tmp_path / "places", *[_places(np.random.default_rng(0))] * 3)
    with StoreWriter(tmp_path / "other", KIND, FIELDS, {}) as coco:
        coco.add("000000000002", jpeg=b"", questions=asked[1:3])
    with pytest.raises(InvalidFile, match="none of the photos"):
        prepare_vqa_photos(tmp_path / "out", tmp_path / "other", tmp_path / "places", SCALE, quiet)


def test_people_look_at_what_the_question_or_its_answer_names(questions: Questions) -> None:
    dogs = cats = 0
    for one in _split(questions, "changed"):
        if one.question_type == "is the":
            assert _best(one.importance) == 1
            dogs += 1
        elif one.answers[0] == "cat":
            assert _best(one.importance) == 2
            cats += 1
        else:
            assert one.importance is None
    assert dogs
    assert cats


def test_training_questions_are_hinted_only_where_both_kinds_of_looks_are_known(questions: Questions) -> None:
    learnt = _split(questions, "train")
    hinted = [one for one in learnt if one.importance is not None]
    assert 0 < len(hinted) < len(learnt)
    for one in hinted:
        # Without a question people look at the cat, in the lower right corner; the whole photo is no place to look at.
        assert _best(one.free_view) == 2
        assert one.free_view is not None
        assert np.isnan(one.free_view[0])


def test_windows_are_joined_and_things_have_the_state_of_the_windows_they_cover(stores: tuple[Path, Path]) -> None:
    row = next(iter(Store(stores[1])))
    # With all directions kept, distances between states stay as they are, but for the scale.
    seen = PrincipalPlaces.of(Store(stores[1]), _SIZE)(row)
    assert len(seen) == 3 + (_SIDE // 2) ** 2
    states = seen.features[:, -_SIZE:]
    # The dog covers the first of the joined windows, the cat the last.
    np.testing.assert_allclose(states[1], states[3], atol=1e-5)
    np.testing.assert_allclose(states[2], states[-1], atol=1e-5)
    np.testing.assert_allclose(seen.boxes_xyxy[[3, -1]], [_DOG, _CAT])
    given = row["regions"].astype(np.float32)[3 : 4 + _SIDE**2, :_SIZE]
    windows = given[1:].reshape(_SIDE, _SIDE, _SIZE)
    first, last = windows[:2, :2].mean(axis=(0, 1)), windows[2:, 2:].mean(axis=(0, 1))
    ratio = np.linalg.norm(states[3] - states[0]) / np.linalg.norm(first - given[0])
    assert np.linalg.norm(states[-1] - states[3]) == pytest.approx(ratio * np.linalg.norm(last - first), rel=1e-3)
    # Windows have no vector in the space of texts, and say that they are windows.
    assert not seen.features[3:, :_SIZE].any()
    assert seen.features[3:, _SIZE + 3].tolist() == [1.0] * 4
    np.testing.assert_allclose(seen.features[:3, _SIZE], [0, 0.9, 0.5], atol=1e-3)


def test_a_second_look_changes_nothing_of_what_the_first_one_saw(tmp_path: Path) -> None:
    once, twice = (
        _store(tmp_path / str(again), *(_places(np.random.default_rng(seed), again=again) for seed in range(9)))
        for again in (False, True)
    )
    seen = [PrincipalPlaces.of(store, _SIZE)(store.by_key("000000000000")) for store in (once, twice)]
    np.testing.assert_array_equal(seen[0].boxes_xyxy, seen[1].boxes_xyxy)
    assert seen[0].features.shape == seen[1].features.shape
    np.testing.assert_allclose(seen[0].features[:, _SIZE : _SIZE + 4], seen[1].features[:, _SIZE : _SIZE + 4])


@pytest.mark.parametrize("reason", ["do not begin with the whole", "not those of the whole"])
def test_places_of_another_layout_are_refused(tmp_path: Path, reason: str) -> None:
    right = _places(np.random.default_rng(0))
    features, boxes = right.features, right.boxes_xyxy
    if "begin" in reason:
        features = np.pad(features, ((0, 0), (0, 2)))
    else:
        # As they were written once: things do not come again by their states.
        features, boxes = features[:-2], boxes[:-2]
    store = _store(tmp_path / "places", RegionFeatures(features, boxes))
    with pytest.raises(InvalidValue, match=f"photo 000000000000: .*{reason}"):
        PrincipalPlaces.of(store, _SIZE)


def test_a_photo_on_which_nothing_was_found_has_its_windows_alone(stores: tuple[Path, Path], tmp_path: Path) -> None:
    bare = _store(tmp_path / "places", _places(np.random.default_rng(0), nothing=True))
    seen = PrincipalPlaces.of(Store(stores[1]), _SIZE)(next(iter(bare)))
    assert len(seen) == 1 + (_SIDE // 2) ** 2


def test_places_of_other_photos_are_refused(stores: tuple[Path, Path], tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "places", REGIONS, PLACES_FIELDS, {}) as places:
        seen = _places(np.random.default_rng(0))
        places.add("999999999999", regions=seen.features, boxes=seen.boxes_xyxy)
    with pytest.raises(InvalidFile, match="none of the photos"):
        prepare_vqa_photos(tmp_path / "out", stores[0], tmp_path / "places", SCALE, quiet)


def test_the_report_has_every_row_and_its_claims_name_looks_without_a_question(
    stores: tuple[Path, Path], tmp_path: Path
) -> None:
    plan = HintVqaExperiment(
        coco=stores[0],
        places=stores[1],
        seeds=(0,),
        workers=0,
        photos=SCALE,
        runs={f"{SECTION} {VQA}": SMALL},
        least_gain=-100.0,
        left_out=("permuted",),
        shown=2,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HintVqaExperiment, "decides_from", 1)
        results = plan.run(tmp_path, quiet)
    accuracy, grounding = results.tables
    kept = [row.title for row in HintVqaExperiment.tuned if row.key != "permuted"]
    names = [rows.CEILING_ROW.title, rows.BASE_ROW.title, *kept]
    assert [row.name for row in accuracy.rows] == [rows.TITLES[rows.BLIND], *names]
    assert [row.name for row in grounding.rows] == names
    assert {claim.source for claim in results.claims} == {"paper", rows.CRITIQUE, rows.OURS}
    chosen = json.loads((tmp_path / SECTION / "weights.json").read_text())["weights"]
    assert chosen[rows.FREE_VIEW] in SMALL.weights
    recipe = json.loads((tmp_path / SECTION / VQA / "free-view-0" / "result.json").read_text())["recipe"]
    assert recipe["model"]["hint"]["hints"] == "free_view"
    assert [[panel.title for panel in one.panels] for one in results.heats] == [["base", "HINT", "people"]] * 2
    assert all((tmp_path / one.photo).read_bytes().startswith(b"\xff\xd8") for one in results.heats)
    assert (tmp_path / "report.md").is_file()
    assert any("gate of -100 points" in remark for remark in results.remarks)
    assert not any("shuffled over regions" in claim.text for claim in results.claims)


def test_rows_that_are_needed_are_not_left_out(stores: tuple[Path, Path]) -> None:
    with pytest.raises(UnknownName, match="row to leave out 'hint'"):
        HintVqaExperiment(coco=stores[0], places=stores[1], left_out=("hint",))
