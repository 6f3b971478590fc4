"""How the answering part is made: what is asked, which photos are held out, and all of it end to end, tiny."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from saywhere.build.answer_places import see_places
from saywhere.build.answer_questions import (
    IS_THIS,
    SAYINGS,
    THIS,
    QuestionScale,
    pointing_questions,
    write_questions,
)
from saywhere.build.answer_report import calibration_error
from saywhere.build.answers import (
    PART,
    REPORT,
    AnswerInputs,
    AnswerScale,
    answer_recipe,
    build_answers,
    install_answers,
    prepare_answers,
)
from saywhere.build.coco import FIELDS, KIND
from saywhere.build.photo_boxes import PhotoBoxes
from saywhere.core import Frame
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats32
from saywhere.learn.registry import make_task
from saywhere.models.answerer.answering import QuestionAnswerer
from saywhere.models.answerer.batch import PhotoItem, collate
from saywhere.models.answerer.config import AnswererConfig
from saywhere.models.answerer.data import TEST, TRAIN, TUNE, AnswerData, box_fits, read_second
from saywhere.models.answerer.network import AnswerNet
from saywhere.models.answerer.second import SecondReader
from saywhere.models.answerer.start import begin_as
from saywhere.models.common.answers import AnswerVocabulary
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import (
    AUXILIARY,
    AUXILIARY_FIELDS,
    AUXILIARY_KIND,
    FOUND,
    FOUND_FIELDS,
    FOUND_KIND,
    Quantiser,
    photo_writer,
)
from saywhere.models.patchioner.answering import checked_answerer, places_for, state_places
from saywhere.models.patchioner.eyes import AlignedView
from saywhere.models.patchioner.seer_config import read_config, save_config
from saywhere.models.registry import open_answerer
from saywhere.store import Store, StoreWriter
from saywhere.vision.eye import EyeConfig, EyeNet
from saywhere.vision.view import View
from tests.models.answerer_world import WordVectors
from tests.models.test_patchioner_seer import CONFIG

DOG, CAT = (0.1, 0.1, 0.5, 0.5), (0.6, 0.2, 0.9, 0.8)
EYE = EyeConfig(size=12, heads=2, layers=1, text_size=12, tap=0, input_px=56, patch_px=14, cell_size=4, kinds=2)
QUESTIONS = QuestionScale(least_count=1)
SCALE = AnswerScale(QUESTIONS, steps=8, blind_steps=8, batch=4, width=8, layers=1, least=0.0, bf16=False)
PHOTOS = 60


def quiet(*_: object) -> None: ...


def _question(text: str, answers: Sequence[str], split: str, kind: str = "what color is the") -> dict[str, object]:
    answer_type = "yes/no" if answers[0] in ("yes", "no") else "other"
    common = {"id": 1, "question": text, "question_type": kind, "answer_type": answer_type, "answer": answers[0]}
    return {**common, "answers": list(answers), "split": split}


@pytest.fixture
def inputs(tmp_path: Path) -> AnswerInputs:
    """Sixty photos with a dog and questions, what a trunk gave for them, and an eye that learnt nothing."""
    rng = np.random.default_rng(0)
    with StoreWriter(tmp_path / "coco", KIND, FIELDS, {}) as coco:
        for number in range(PHOTOS):
            colour = ("red", "blue")[number % 2]
            split = "valid" if number % 5 == 0 else "train"
            asked = [_question("What color is the dog?", [colour] * 7 + ["brown"] * 3, split)]
            asked.append(_question("Is the dog red?", ["yes" if colour == "red" else "no"] * 10, "train", "is the"))
            asked.append(_question("Why is it here?", ["food"] * 10, split, "why"))
            coco.add(
                f"{number:012}",
                boxes_xyxy=[DOG, CAT] if number % 3 else [DOG],
                classes=[16, 15] if number % 3 else [16],
                captions=["a dog beside a cat"],
                questions=asked,
                cocoqa=[{"question": "what is beside the cat", "answer": "dog", "kind": "object", "split": "train"}],
                split="validation" if number % 10 == 1 else "train",
            )
    trunk_states = rng.normal(size=(PHOTOS, 17, EYE.trunk_size)).astype(np.float32)
    quantiser = Quantiser.fit(trunk_states)
    with photo_writer(tmp_path / "eye-features", quantiser, {"trunk": "made up"}) as writer:
        for number in range(PHOTOS):
            labels = {"boxes_xyxy": [DOG], "classes": [0], "caption_vectors": np.zeros((0, 12)), "split": "train"}
            writer.add(f"{number:012}", tapped=quantiser.to_bytes(trunk_states[number]), **labels)
    with StoreWriter(tmp_path / "eye-features" / FOUND, FOUND_KIND, FOUND_FIELDS, {}) as writer:
        for number in range(PHOTOS):
            writer.add(f"{number:012}", boxes_xyxy=[DOG, CAT], kinds=[1, 0], scores=[0.9, 0.05])
    eye_of_nothing().save_pretrained(tmp_path / "eye")
    return AnswerInputs(tmp_path / "coco", tmp_path / "eye-features", tmp_path / "eye")


def eye_of_nothing() -> EyeLearner:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        names = {"cat": torch.randn(12), "dog": torch.randn(12)}
        return EyeLearner(EyeNet(EYE), names, {}).eval()


def test_pointing_asks_what_is_there_and_half_the_time_what_is_not() -> None:
    photo = PhotoBoxes("1", {"dog": (DOG,), "cat": (CAT,)})
    rng = np.random.default_rng(0)
    scale = QuestionScale(pointing=5)
    asked = [one for _ in range(200) for one in pointing_questions(photo, scale, rng)]
    named = {one.pointed_xyxy: one.answers[0] for one in asked if one.question_type == THIS}
    assert named == {DOG: "dog", CAT: "cat"}
    yes_no = [one.answers[0] for one in asked if one.question_type == IS_THIS]
    assert yes_no.count("yes") / len(yes_no) == pytest.approx(0.5, abs=0.08)
    for one in asked:
        if one.question_type == IS_THIS:
            truth = "dog" if one.pointed_xyxy == DOG else "cat"
            assert (one.answers[0] == "yes") == (one.text.removesuffix("?").split(" ", 3)[3] == truth)


def test_a_place_must_fit_what_is_pointed_at() -> None:
    places = np.array([(0, 0, 1, 1), DOG, CAT, (0.1, 0.1, 0.5, 0.3)])
    assert box_fits(np.array(DOG), places) == pytest.approx([0.16, 1.0, 0.0, 0.5])


def test_photos_of_vqa_s_validation_and_of_ours_are_never_learnt_from(inputs: AnswerInputs, tmp_path: Path) -> None:
    write_questions(Store(inputs.coco), tmp_path, QUESTIONS, quiet)
    splits = {row.key: row["split"] for row in Store(tmp_path / "questions")}
    for number in range(PHOTOS):
        if number % 5 == 0:
            assert splits[f"{number:012}"] == TEST
        elif number % 10 == 1:
            assert splits[f"{number:012}"] == TUNE
    assert sum(one == TRAIN for one in splits.values()) > PHOTOS / 2
    for row in Store(tmp_path / "questions"):
        asked = [one for one in row["asked"] if one[1] == "human"]
        assert len(asked) == (2 if row["split"] == TEST else 3), "training questions of test photos are left out"


def test_other_sets_questions_of_people_are_learnt_from_and_nothing_is_chosen_by_them(
    inputs: AnswerInputs, tmp_path: Path
) -> None:
    further = _question("What breed is it?", ["pug"] * 10, "train") | {"source": "aokvqa"}
    with StoreWriter(tmp_path / "coco-further", KIND, FIELDS, {}) as coco:
        for row in Store(inputs.coco):
            coco.add(row.key, questions=[*row["questions"], further], split=row["split"])
    write_questions(Store(tmp_path / "coco-further"), tmp_path, QUESTIONS, quiet)
    asked = {TRAIN: 0, TUNE: 0, TEST: 0}
    for row in Store(tmp_path / "questions"):
        asked[row["split"]] += sum(one[0] == further["question"] for one in row["asked"])
    assert asked[TRAIN] > PHOTOS / 2
    assert asked[TUNE] == asked[TEST] == 0


def test_what_captions_say_is_asked_too_in_answers_that_others_give(inputs: AnswerInputs, tmp_path: Path) -> None:
    said = {row.key: ["a red dog is sitting on a couch beside a cat"] * 5 for row in Store(inputs.coco)}
    with StoreWriter(tmp_path / "coco-said", KIND, FIELDS, {}) as coco:
        for row in Store(inputs.coco):
            labels = {name: row[name] for name in ("boxes_xyxy", "classes", "questions", "cocoqa", "split")}
            coco.add(row.key, captions=said[row.key], **labels)
        coco.add("000000000900", captions=["two dogs run on grass"] * 5, split="train")
    store = Store(tmp_path / "coco-said")
    made = {number: tmp_path / str(number) for number in (0, 3)}
    for number, out in made.items():
        write_questions(store, out, replace(QUESTIONS, sayings=number), quiet)
    assert "000000000900" not in Store(made[0] / "questions"), "nobody asked anything about it"
    asked = {row.key: [one for one in row["asked"] if one[1] == SAYINGS] for row in Store(made[3] / "questions")}
    splits = {row.key: row["split"] for row in Store(made[3] / "questions")}
    known = AnswerVocabulary.load(made[3] / "answers.json").texts
    assert len(asked) == PHOTOS + 1
    for photo, some in asked.items():
        assert len(some) <= 3
        assert bool(some) == (splits[photo] == TRAIN)
    for text, *_, answers, targets, pointed in (one for some in asked.values() for one in some):
        assert text.endswith("?")
        assert len(answers) == 1
        assert pointed is None
        assert bool(targets) == (answers[0] in known), "words that only captions say are not learnt"
    assert known == AnswerVocabulary.load(made[0] / "answers.json").texts


def test_the_whole_build_gives_a_part_that_answers_and_a_report(inputs: AnswerInputs, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = build_answers(inputs, out, SCALE, quiet, WordVectors())
    assert {"human: all", "human: colour", "human: other"} <= set(report.shares)
    for share in report.shares.values():
        assert 0 <= share.accuracy <= 1
        assert share.questions > 0
    assert "soft accuracy" in (out / REPORT).read_text()
    network = AnswerNet.from_pretrained(out / PART)
    assert network.judgement is not None
    assert network.judgement.refuses_kind("Why is it here?"), "a blind network knows as much"
    places = state_places(np.ones(12, np.float32), np.ones((17, 12), np.float32), None)
    [given] = QuestionAnswerer(network, WordVectors).answer([places], ["Why is it here?"])
    assert given.reason
    assert open_answerer(out / PART).region_size == 12 + 4


def test_a_part_is_put_into_a_model_in_place_of_another(inputs: AnswerInputs, tmp_path: Path) -> None:
    build_answers(inputs, tmp_path / "made", SCALE, quiet, WordVectors())
    model = tmp_path / "model"
    (model / PART).mkdir(parents=True)
    (model / PART / "old.txt").write_text("of another network")
    save_config(model, CONFIG)
    install_answers(tmp_path / "made" / PART, model)
    assert read_config(model).answers == PART
    assert not (model / PART / "old.txt").exists()
    assert AnswerNet.from_pretrained(model / PART).judgement is not None
    with pytest.raises(InvalidFile, match="already"):
        install_answers(model / PART, model)


def test_a_build_goes_on_where_it_stopped(inputs: AnswerInputs, tmp_path: Path) -> None:
    first = build_answers(inputs, tmp_path / "out", SCALE, quiet, WordVectors())
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "data").rglob("*.safetensors")}
    again = build_answers(inputs, tmp_path / "out", SCALE, quiet, WordVectors())
    assert again.shares == first.shares
    assert made == {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "data").rglob("*.safetensors")}


def test_photos_without_features_are_counted_and_left_out(inputs: AnswerInputs, tmp_path: Path) -> None:
    photos = ["000000000001", "999999999999"]
    assert see_places(inputs.features, inputs.eye, photos, tmp_path, quiet, bf16=False) == 1
    with pytest.raises(InvalidFile, match="none of the 1 photos"):
        see_places(inputs.features, inputs.eye, photos[1:], tmp_path / "none", quiet)


def test_places_are_the_whole_the_things_and_windows_of_hidden_states(inputs: AnswerInputs, tmp_path: Path) -> None:
    see_places(inputs.features, inputs.eye, ["000000000001"], tmp_path, quiet, bf16=False)
    row = Store(tmp_path / "places")[0]
    kinds = row["regions"][:, -3:].argmax(axis=1)
    assert kinds.tolist() == [0, 1] + [2] * (1 + 16 + 1), "the dog by name; the whole, 4 × 4 windows, the dog again"
    np.testing.assert_allclose(row["regions"][1, :12], eye_of_nothing().name_vectors[1], atol=1e-3)
    np.testing.assert_allclose(row["regions"][[1, -1], 12], 0.9, atol=1e-3)
    np.testing.assert_allclose(row["boxes"][[1, -1]], [DOG, DOG], atol=1e-3)
    # The dog covers 0.6 of the first row and column of windows, and the second ones.
    windows = row["regions"][3:-1, :12].astype(np.float32).reshape(4, 4, 12)[:2, :2]
    inside = np.einsum("r,c,rcd->d", [0.6, 1], [0.6, 1], windows) / 1.6**2
    np.testing.assert_allclose(row["regions"][-1, :12], inside, atol=5e-3)
    assert row["boxes"][kinds == 2][1:-1].min(axis=0).tolist() == [0, 0, 0.25, 0.25]


def save_second_looks(inputs: AnswerInputs) -> None:
    """What a second look would give, if it saw the dog's colour."""
    rng = np.random.default_rng(1)
    with StoreWriter(inputs.features / AUXILIARY, AUXILIARY_KIND, AUXILIARY_FIELDS, {}) as writer:
        for number in range(PHOTOS):
            seen = rng.integers(0, 40, size=(5, 20)).astype(np.uint8)
            seen[:, 0] = 200 * (number % 2)
            writer.add(f"{number:012}", features=seen)


def test_a_second_look_gives_places_of_its_own(inputs: AnswerInputs, tmp_path: Path) -> None:
    save_second_looks(inputs)
    photos = [f"{number:012}" for number in range(PHOTOS)]
    see_places(inputs.features, inputs.eye, photos, tmp_path, quiet, bf16=False)
    places = Store(tmp_path / "places")
    row = places[1]
    kinds = row["regions"][:, -4:].argmax(axis=1)
    assert kinds.tolist() == [0, 1] + [2] * 18 + [3] * 5
    assert (row["regions"][:, -4:].sum(axis=1) == 1).all()
    np.testing.assert_allclose(row["boxes"][-5:-3], [(0, 0, 1, 1), (0, 0, 0.5, 0.5)])
    again = np.concatenate([one["regions"][-5:, :12] for one in places]).astype(np.float32)
    np.testing.assert_allclose(again.mean(axis=0), 0, atol=1e-2)
    np.testing.assert_allclose(again.std(axis=0), 1, atol=1e-2)
    # What differs most comes first.
    widest = np.stack([one["regions"][-5, 0] for one in places])
    assert (np.sign(widest[::2]) == np.sign(widest[0])).all()
    assert (np.sign(widest[1::2]) != np.sign(widest[0])).all()
    shutil.rmtree(inputs.features / AUXILIARY)
    with pytest.raises(InvalidFile):
        see_places(inputs.features, inputs.eye, photos, tmp_path, quiet, bf16=False)
    without = state_places(np.ones(12, np.float32), np.ones((17, 12), np.float32), None)
    assert without.features.shape[1] == row["regions"].shape[1] - 1


def test_answers_that_read_a_second_look_ask_for_it(inputs: AnswerInputs, tmp_path: Path) -> None:
    save_second_looks(inputs)
    build_answers(inputs, tmp_path / "made", SCALE, quiet, WordVectors())
    answerer = QuestionAnswerer(AnswerNet.from_pretrained(tmp_path / "made" / PART), WordVectors)
    fitted = AnswerData(tmp_path / "made" / "data").second
    assert answerer.second is not None
    assert fitted is not None
    seen = np.random.default_rng(2).uniform(0, 6, size=(5, 20)).astype(np.float32)
    np.testing.assert_allclose(answerer.second.read(seen), fitted.read(seen), atol=0.1)
    assert checked_answerer(answerer, 12) is answerer
    states, patches = np.ones((17, 12), np.float32), np.ones((4, 4, 12), np.float32)
    view = View(Frame.of_grid(4, 4), patches, patches[0, 0], states=states)
    with pytest.raises(InvalidValue, match="no second look"):
        places_for(answerer, AlignedView(view))
    places = [places_for(answerer, AlignedView(replaced(view, look))) for look in (seen, 6 - seen)]
    assert answerer.region_size == places[0].features.shape[1]
    assert np.abs(places[0].features - places[1].features).max() > 0.1
    answerer.judgement = None
    first, second = (answerer.answer([one], ["What color is the dog?"])[0] for one in places)
    assert first.ranked != second.ranked
    model = tmp_path / "model"
    model.mkdir()
    save_config(model, CONFIG | {"detector": True})
    install_answers(tmp_path / "made" / PART, model)
    assert read_config(model).auxiliary


def replaced(view: View, auxiliary: Floats32) -> View:
    """The view with another second look."""
    return view.with_found((), auxiliary=auxiliary)


def test_a_build_begins_where_a_network_without_a_second_look_stopped(inputs: AnswerInputs, tmp_path: Path) -> None:
    build_answers(inputs, tmp_path / "first", SCALE, quiet, WordVectors())
    first, before = AnswerNet.from_pretrained(tmp_path / "first" / PART), AnswerData(tmp_path / "first" / "data")
    save_second_looks(inputs)
    begun = replace(inputs, start=tmp_path / "first" / PART)
    prepare_answers(begun, tmp_path / "second" / "data", SCALE, quiet, WordVectors())
    recipe = answer_recipe(tmp_path / "second" / "data", SCALE, start=begun.start)
    task: Any = make_task(recipe)
    network = task.build(torch.Generator()).eval()
    assert network.config.kinds == first.config.kinds + 1
    photo, asked = next(iter(before.photos(TRAIN).items()))
    without, looked = (data.item(photo, asked) for data in (before, task.data))
    given = [
        net(batch.regions, batch.boxes, batch.present, batch.tokens, batch.read, batch.pointed).logits[0]
        for net, batch in (
            (first, collate([without], first.config.answers)),
            (network, collate([seen_before(looked, len(without.regions))], network.config.answers)),
        )
    ]
    torch.testing.assert_close(given[0], given[1], atol=0.05, rtol=0.05)
    assert build_answers(begun, tmp_path / "second", SCALE, quiet, WordVectors()).shares


def seen_before(item: PhotoItem, places: int) -> PhotoItem:
    """The photo without the places of its second look, which come last."""
    asked = tuple(replace(one, pointed=None if one.pointed is None else one.pointed[:places]) for one in item.asked)
    return PhotoItem(item.regions[:places], item.boxes[:places], asked)


def test_new_answers_begin_as_the_rarest_and_another_shape_is_refused() -> None:
    shape = AnswererConfig(2, 8, text_size=6, width=8, heads=2, layers=1, inner=8, counters=2)
    other = AnswerNet.fresh(shape, 0).attach(AnswerVocabulary(("yes", "no")))
    network = AnswerNet.fresh(replace(shape, answers=3), 1).attach(AnswerVocabulary(("red", "no", "yes")))
    with torch.no_grad():
        other.answer.bias.copy_(torch.tensor([2.0, -1.0]))
    begin_as(network, other)
    assert network.answer.bias.tolist() == [-1, -1, 2]
    torch.testing.assert_close(network.answer.weight[1:], other.answer.weight.flip(0))
    for wrong in (replace(shape, width=16), replace(shape, layers=2), replace(shape, region_size=9)):
        with pytest.raises(InvalidValue, match="another shape"):
            begin_as(network, AnswerNet.fresh(wrong, 0).attach(AnswerVocabulary(("yes", "no"))))
    with pytest.raises(InvalidValue, match="does not know its answers"):
        begin_as(network, AnswerNet.fresh(shape, 0))


def test_a_second_look_of_fewer_numbers_than_places_have_is_refused() -> None:
    with pytest.raises(InvalidValue, match="has 4 numbers a place, but is to be read as 12"):
        SecondReader.fit(torch.zeros(9, 4), 12)


def test_a_damaged_file_of_the_second_look_is_named(tmp_path: Path) -> None:
    save_file({"mean": torch.zeros(3)}, tmp_path / "second.safetensors")
    with pytest.raises(InvalidFile, match="how a second look is read"):
        read_second(tmp_path / "second.safetensors")


def test_questions_made_with_other_settings_are_not_taken_for_these(inputs: AnswerInputs, tmp_path: Path) -> None:
    write_questions(Store(inputs.coco), tmp_path, QUESTIONS, quiet)
    with pytest.raises(InvalidFile, match="other settings"):
        write_questions(Store(inputs.coco), tmp_path, QuestionScale(least_count=1, limit=50), quiet)


def test_another_store_and_photos_without_questions_are_refused(inputs: AnswerInputs, tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "other", "other", {"x": "int32"}, {}) as writer:
        writer.add("1", x=1)
    with pytest.raises(InvalidFile, match="holds other, not coco"):
        write_questions(Store(tmp_path / "other"), tmp_path / "out", QUESTIONS, quiet)
    with StoreWriter(tmp_path / "plain", KIND, FIELDS, {}) as writer:
        writer.add("000000000001", split="train")
    with pytest.raises(InvalidFile, match="no photo with questions"):
        write_questions(Store(tmp_path / "plain"), tmp_path / "out", QUESTIONS, quiet)


def test_a_folder_that_lacks_its_words_is_named(inputs: AnswerInputs, tmp_path: Path) -> None:
    build_answers(inputs, tmp_path / "out", SCALE, quiet, WordVectors())
    (tmp_path / "out" / "data" / "words.json").write_text("{}")
    with pytest.raises(InvalidFile, match=r"words\.json"):
        AnswerData(tmp_path / "out" / "data")


def test_probabilities_that_are_right_have_no_error() -> None:
    told = np.repeat([0.1, 0.9], 500)
    right = np.concatenate([np.arange(500) % 10 == 0, np.arange(500) % 10 != 0]).astype(np.float64)
    error, table = calibration_error(told, right)
    assert error == pytest.approx(0, abs=1e-9)
    assert sum(count for _, _, count in table) == 1000
