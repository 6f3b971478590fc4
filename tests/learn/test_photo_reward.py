"""A photo writer that is rewarded: what its captions earn, what inventing costs, and that it learns from both."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from saywhere.core.errors import SaywhereError
from saywhere.language.vocabulary import END_ID, Vocabulary
from saywhere.learn import train
from saywhere.learn.photo_reward import PhotoRewardSection, PhotoRewardTask, log_likelihoods
from saywhere.learn.recipe import parse_recipe
from saywhere.learn.records import StepDone
from saywhere.learn.registry import check_sections
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import CAPTIONS, RegionNames, write_captions
from saywhere.models.patchioner.decoder import DecoderConfig, PhotoStates, PrefixDecoder
from saywhere.models.patchioner.photo_writing import PhotoWriterData, with_places
from tests.models import eye_small


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("told")
    eye_small.save_captions(out, ("train",) * 12 + ("validation",) * 4)
    return out


def task(folder: Path, **settings: float) -> PhotoRewardTask:
    data = PhotoWriterData(folder=folder, eye=folder / "eye", decoder=folder / "decoder")
    return PhotoRewardTask(PhotoRewardSection(samples=2, boxes=1, dropout=0.0, **settings), data)


def rewards(rewarding: PhotoRewardTask, photo: int, texts: list[str]) -> list[float]:
    batch = rewarding.collate([rewarding.train_items()[photo]], torch.Generator())
    rows = [[*rewarding.vocabulary.encode(text.split()).ids, 2] for text in texts]
    longest = max(map(len, rows))
    drawn = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    earned: list[float] = rewarding._rewards(drawn, batch).tolist()
    return earned


def test_a_caption_that_people_said_earns_more_than_another(folder: Path) -> None:
    said, other = rewards(task(folder), 0, ["a person on a table", "a table a table"])
    assert said > other + 1


def test_naming_a_thing_that_is_not_there_costs(folder: Path) -> None:
    rewarding = task(folder)
    items = rewarding.train_items()
    absent = {
        name: photo
        for photo in range(len(items))
        for name in set(eye_small.NAMES) - rewarding.collate([items[photo]], torch.Generator()).things[0]
    }
    name, photo = min(absent.items())
    texts = [f"a {name} on a table", "a table on a table"]
    free, costly = (rewards(task(folder, invented=cost), photo, texts) for cost in (0.0, 0.5))
    assert costly[0] == pytest.approx(free[0] - 0.5)
    assert costly[1] == pytest.approx(free[1])


def test_likelihoods_are_those_of_the_words_alone(folder: Path) -> None:
    rewarding = task(folder)
    model = rewarding.build(torch.Generator().manual_seed(0)).eval()
    vectors = torch.randn(1, eye_small.TEXT, generator=torch.Generator().manual_seed(1))
    photo_states = PhotoStates(torch.ones(1, 17, eye_small.SIZE), torch.ones(1, 16))
    short, padded = torch.tensor([[4, 5, 2]]), torch.tensor([[4, 5, 2, 0, 0]])
    with torch.no_grad():
        torch.testing.assert_close(
            log_likelihoods(model.decoder, vectors, short, photo_states),
            log_likelihoods(model.decoder, vectors, padded, photo_states),
        )


def test_likelihoods_are_those_of_the_temperature_that_words_are_drawn_at(folder: Path) -> None:
    model = task(folder).build(torch.Generator().manual_seed(0)).eval()
    vectors = torch.randn(1, eye_small.TEXT, generator=torch.Generator().manual_seed(1))
    photo_states = PhotoStates(torch.ones(1, 17, eye_small.SIZE), torch.ones(1, 16))
    words = range(END_ID, END_ID + len(model.decoder.say(torch.zeros(1, model.decoder.config.width))[0]))
    with torch.no_grad():
        for temperature in (0.5, 1.0):
            first = [
                log_likelihoods(model.decoder, vectors, torch.tensor([[word]]), photo_states, temperature)
                for word in words
            ]
            assert float(torch.cat(first).exp().sum()) == pytest.approx(1, abs=1e-5)
        warm, cold = (
            log_likelihoods(model.decoder, vectors, torch.tensor([[4, 5, 2]]), photo_states, t) for t in (1.0, 0.5)
        )
    assert float(warm) != pytest.approx(float(cold))


def test_what_captions_say_of_surroundings_goes_on_being_learnt_where_the_eye_takes_it_to_be(tmp_path: Path) -> None:
    eye_small.save_captions(tmp_path, ("train",) * 6 + ("validation",) * 2)
    texts = ["a dog under a blue sky", "a cup on green grass"]
    named = [RegionNames((0.0, 0.0, 0.5, 0.5), ("a dog",))]
    shutil.rmtree(tmp_path / CAPTIONS)
    write_captions(tmp_path, ((f"{number:012}", [texts[number % 2]] * 2, named) for number in range(8)))
    words = Vocabulary.of_words(texts)
    config = DecoderConfig(len(words), eye_small.TEXT, width=16, layers=1, heads=2, feed_forward=32, max_words=9)
    PrefixDecoder.fresh(config, words, 0).save_pretrained(tmp_path / "decoder")
    vectors = torch.eye(eye_small.TEXT)
    spoken = {"sky": vectors[0], "grass": vectors[1]}
    names = dict(zip(eye_small.NAMES, vectors[2:5], strict=True))
    EyeLearner(eye_small.small_eye().eye, names, spoken).save_pretrained(tmp_path / "eye")

    rewarding = task(tmp_path, surroundings=True, sample_words=8)
    model = rewarding.build(torch.Generator().manual_seed(0)).eval()
    generator = torch.Generator().manual_seed(0)
    items = rewarding.train_items()
    batch = rewarding.collate([items[i] for i in range(len(items))], generator)
    assert batch.around is not None
    seen, around = model.eye(batch.likely.inputs), batch.around
    placed = with_places(model.eye, seen, batch.likely, around.spoken_of, around.is_free, generator)
    rows = placed.words.view(len(items), 2, -1)[:, 1].tolist()
    said = [rewarding.vocabulary.text([piece for piece in row if piece > END_ID]) for row in rows]
    cells = placed.cells.view(len(items), 2, 8, 8)[:, 1]
    assert set(said) <= {"", "a blue sky", "green grass"}
    assert len(set(said)) > 1
    for number, (text, place) in enumerate(zip(said, cells, strict=True)):
        assert float(place.sum()) == pytest.approx(float(bool(text)))
        box = (items[number].photo.boxes_xyxy[0] * 8).astype(int)
        assert not place[box[1] : box[3], box[0] : box[2]].any(), "a thing lies there"
    losses = rewarding.losses(model.train(), batch, generator)
    plain = task(tmp_path, sample_words=8)
    without = plain.losses(model, plain.collate([items[i] for i in range(6)], generator), generator)
    assert losses["naming"].isfinite()
    assert float(losses["naming"]) != pytest.approx(float(without["naming"]))


def test_a_writer_earns_more_after_learning(folder: Path, tmp_path: Path) -> None:
    parts = {name: str(folder / sub) for name, sub in (("folder", ""), ("eye", "eye"), ("decoder", "decoder"))}
    recipe = parse_recipe(
        {
            "name": "reward",
            "task": "patchioner-photo-reward",
            "model": {"samples": 6, "sample_words": 8, "boxes": 1, "dropout": 0.0},
            "data": parts,
            "train": {"steps": 60, "batch_size": 6, "lr": 1e-2, "device": "cpu"},
            "log": {"every_steps": 1},
            "validate": {"metric": "loss", "every_steps": 60},
        },
        "test",
    )
    steps: list[StepDone] = []
    train(recipe, tmp_path / "run", on_event=lambda one: steps.append(one) if isinstance(one, StepDone) else None)
    earned = [one.losses["reward"] for one in steps]
    assert sum(earned[-10:]) > sum(earned[:10]) + 1


@pytest.mark.parametrize(
    "wrong", [{"samples": 1}, {"sample_words": 0}, {"sample_temperature": 0}, {"eye": {"layers": 1}}]
)
def test_what_cannot_be_rewarded_is_refused_before_work_starts(folder: Path, wrong: dict[str, object]) -> None:
    recipe = parse_recipe(
        {
            "name": "reward",
            "task": "patchioner-photo-reward",
            "model": wrong,
            "data": {"folder": str(folder), "eye": str(folder / "eye"), "decoder": str(folder / "decoder")},
            "train": {"steps": 1, "batch_size": 2, "lr": 1e-2},
        },
        "test",
    )
    with pytest.raises(SaywhereError, match=r"samples|sample_words|sample_temperature|eye"):
        check_sections(recipe, "test")
