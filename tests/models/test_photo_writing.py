"""A decoder that attends to photos: what it reads, what it learns, and what it begins with."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from saywhere.build.coco import FIELDS, KIND
from saywhere.core.errors import InvalidValue
from saywhere.learn import train, train_to_end
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.learn.records import Validated
from saywhere.models.eye import task as eye_task
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import PHOTOS
from saywhere.models.eye.objective import kept_patches
from saywhere.models.patchioner.decoder import GenerationConfig, PhotoStates, PrefixDecoder
from saywhere.models.patchioner.photo_texts import drawn_evenly
from saywhere.models.patchioner.photo_writing import (
    PhotoWriter,
    PhotoWriterData,
    PhotoWriterSection,
    PhotoWriterTask,
    seen_texts,
)
from saywhere.store import Store, StoreWriter
from saywhere.vision.focus import FocusConfig, FocusNet
from tests.models import eye_small
from tests.models.patchioner_small import decoder, vectors

STATES = 6


def attending() -> PrefixDecoder:
    """A decoder whose attention to the photo adds something."""
    return decoder(states_size=STATES)


def photo(texts: int, seed: int = 3) -> PhotoStates:
    rng = torch.Generator().manual_seed(seed)
    return PhotoStates(torch.randn(1, 5, STATES, generator=rng), torch.rand(texts, 4, generator=rng))


@pytest.mark.parametrize("how", [GenerationConfig(), GenerationConfig("beam", beams=3), GenerationConfig("nucleus")])
def test_a_region_gets_the_same_words_alone_and_among_others(how: GenerationConfig) -> None:
    model, rows, read = attending(), vectors(6), photo(6)
    together = model.write(rows, how, photo_states=read)
    for i, one in enumerate(together):
        alone = model.write(rows[i : i + 1], how, photo_states=read.rows([i]))[0]
        assert alone.text == one.text
        assert alone.score == pytest.approx(one.score, abs=1e-5)


def test_words_depend_on_the_photo_and_on_the_region() -> None:
    model, rows = attending(), vectors(4)
    scores = {
        tuple(round(one.score, 6) for one in model.write(rows, photo_states=read))
        for read in (photo(4), photo(4, seed=4), PhotoStates(photo(4).states, torch.ones(4, 4)))
    }
    assert len(scores) == 3


def test_weights_of_any_scale_mean_the_same() -> None:
    read = photo(3)
    torch.testing.assert_close(read.bias(), PhotoStates(read.states, 7 * read.weights).bias())
    assert read.bias()[:, 0].eq(0).all()


def test_attention_that_has_learnt_nothing_changes_nothing() -> None:
    plain = decoder(layers=1)
    photo_states = decoder(layers=1, states_size=STATES)
    photo_states.load_state_dict(plain.state_dict(), strict=False)
    for block in photo_states.blocks:
        torch.nn.init.zeros_(block.look.out.weight)
        torch.nn.init.zeros_(block.look.out.bias)
    ours = [one.text for one in photo_states.write(vectors(5), photo_states=photo(5))]
    assert ours == [one.text for one in plain.write(vectors(5))]


@pytest.mark.parametrize(("states", "read"), [(0, photo(2)), (STATES, None)])
def test_a_decoder_without_its_photo_or_with_one_it_cannot_read_is_refused(
    states: int, read: PhotoStates | None
) -> None:
    with pytest.raises(InvalidValue, match="was made for"):
        decoder(states_size=states).write(vectors(2), photo_states=read)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("told")
    eye_small.save_captions(out, ("train",) * 12 + ("validation",) * 4)
    return out


def data(folder: Path) -> PhotoWriterData:
    return PhotoWriterData(folder=folder, eye=folder / "eye", decoder=folder / "decoder")


def test_a_decoder_learns_to_put_photos_into_words_and_its_eye_stands_still(folder: Path, tmp_path: Path) -> None:
    recipe = parse_recipe(
        {
            "name": "writer",
            "task": "patchioner-photo-writer",
            "model": {"captions": 2, "boxes": 1, "dropout": 0.0},
            "data": {name: str(folder / sub) for name, sub in (("folder", ""), ("eye", "eye"), ("decoder", "decoder"))},
            "train": {"steps": 40, "batch_size": 6, "lr": 1e-2, "device": "cpu"},
            "validate": {"metric": "loss", "every_steps": 40},
        },
        "test",
    )
    seen: list[Validated] = []
    train(recipe, tmp_path / "run", on_event=lambda one: seen.append(one) if isinstance(one, Validated) else None)
    assert seen[-1].metrics["loss"] < 0.7 * seen[0].metrics["loss"]
    assert seen[-1].metrics["box_loss"] < seen[0].metrics["box_loss"]
    task = PhotoWriterTask(PhotoWriterSection(), data(folder))
    assert not any(one.requires_grad for one in task.build(torch.Generator()).eye.parameters())


def test_an_eye_and_a_decoder_learn_side_by_side(folder: Path, tmp_path: Path) -> None:
    recipe = parse_recipe(
        {
            "name": "both",
            "task": "patchioner-photo-writer",
            "model": {
                **{"captions": 2, "boxes": 1, "dropout": 0.0},
                "eye": {"layers": 1, "heads": 2, "start": "random", "kept_share": 0.75},
            },
            "data": {"folder": str(folder), "decoder": str(folder / "decoder")},
            "train": {"steps": 60, "batch_size": 6, "lr": 1e-2, "device": "cpu"},
            "validate": {"metric": "loss", "every_steps": 60},
        },
        "test",
    )
    seen: list[Validated] = []
    train(recipe, tmp_path / "run", on_event=lambda one: seen.append(one) if isinstance(one, Validated) else None)
    first, last = seen[0].metrics, seen[-1].metrics
    assert last["loss"] < 0.7 * first["loss"]
    assert last["box"] > first["box"]
    assert last["saliency_cc"] > max(0.9, first["saliency_cc"])
    assert last["whole_cosine"] > first["whole_cosine"] + 0.3


def test_patches_that_were_not_read_count_for_nothing(folder: Path) -> None:
    task = PhotoWriterTask(PhotoWriterSection(captions=1, boxes=1, named=0.0), data(folder))
    batch = task.collate([task.train_items()[0]], torch.Generator())
    eye, rows = eye_small.small_eye(), torch.tensor([[15, 1, 4]])
    with torch.no_grad():
        seen = eye(kept_patches(batch.inputs, rows))
        vectors_, photo_states = seen_texts(eye, seen, batch, 3.0, rows)
    assert photo_states.weights[1].nonzero()[:, 0].tolist() == [1, 2]
    mean = seen.cells[0, [1, 2]].mean(dim=(0, 1))
    torch.testing.assert_close(vectors_[1], torch.nn.functional.normalize(mean, dim=0))


def test_a_writer_without_an_eye_is_refused(folder: Path) -> None:
    task = PhotoWriterTask(PhotoWriterSection(), PhotoWriterData(folder=folder, decoder=folder / "decoder"))
    with pytest.raises(InvalidValue, match="eye"):
        task.build(torch.Generator())


def test_a_region_is_the_mean_of_its_cells_and_the_whole_photo_what_the_eye_says_of_it(folder: Path) -> None:
    task = PhotoWriterTask(PhotoWriterSection(captions=1, boxes=1, named=0.0), data(folder))
    batch = task.collate([task.train_items()[0]], torch.Generator())
    eye = eye_small.small_eye()
    with torch.no_grad():
        seen = eye(batch.inputs)
        vectors_, photo_states = seen_texts(eye, seen, batch, 3.0)
    torch.testing.assert_close(vectors_[0], torch.nn.functional.normalize(seen.whole[0], dim=0))
    # The box is the upper left quarter: four patches of sixteen, of which nothing else is read.
    assert photo_states.weights[1].nonzero()[:, 0].tolist() == [0, 1, 4, 5]
    mean = seen.cells[0, [0, 1, 4, 5]].mean(dim=(0, 1))
    torch.testing.assert_close(vectors_[1], torch.nn.functional.normalize(mean, dim=0))


def test_a_box_of_a_known_class_may_be_told_its_name(folder: Path) -> None:
    task = PhotoWriterTask(PhotoWriterSection(captions=1, boxes=1, named=1.0), data(folder))
    batch = task.collate([task.train_items()[1]], torch.Generator())
    assert batch.classes.tolist() == [-1, eye_small.NAMES.index("cup")]
    eye = eye_small.small_eye()
    vectors_, _ = seen_texts(eye, eye(batch.inputs), batch, 1e6)
    torch.testing.assert_close(vectors_[1], torch.eye(eye_small.TEXT)[1])


def test_an_eye_comes_back_out_of_its_folder(tmp_path: Path) -> None:
    eye = eye_small.small_eye()
    eye.save_pretrained(tmp_path / "eye")
    again = type(eye).from_pretrained(tmp_path / "eye")
    assert (again.names, again.words, again.eye.config) == (eye.names, eye.words, eye.eye.config)
    trunk_states = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 17, eye_small.TAPPED)).astype(np.float32))
    torch.testing.assert_close(again(trunk_states).cells, eye(trunk_states).cells)


def test_boxes_of_rare_kinds_are_drawn_before_the_second_of_a_common_one() -> None:
    kinds = [0] * 9 + [4]
    for seed in range(5):
        drawn = drawn_evenly(kinds, 3, torch.Generator().manual_seed(seed))
        assert 9 in drawn[:2]
        assert len(set(drawn)) == 3
    assert drawn_evenly([0], 3, torch.Generator()) == [0, None, None]


@pytest.fixture
def coco(folder: Path, tmp_path: Path) -> Path:
    """The photos themselves."""
    rng = np.random.default_rng(0)
    with StoreWriter(tmp_path / "coco", KIND, FIELDS, {}) as writer:
        for row in Store(folder / PHOTOS):
            file = BytesIO()
            Image.fromarray(rng.integers(0, 255, (30, 40, 3), np.uint8)).save(file, "JPEG")
            writer.add(row.key, jpeg=file.getvalue(), split=row["split"])
    return tmp_path / "coco"


def from_pixels(folder: Path, coco: Path) -> Recipe:
    return parse_recipe(
        {
            "name": "from pixels",
            "task": "patchioner-photo-writer",
            "model": {
                **{"captions": 2, "boxes": 1, "dropout": 0.0, "surroundings": True},
                "eye": {"kept_share": 0.75, "tuned_blocks": 2, "tuned_rank": 3, "surroundings": 0.4},
            },
            "data": {
                **{"folder": str(folder), "photos": str(coco), "validation": 4},
                **{"eye": str(folder / "eye"), "decoder": str(folder / "decoder")},
            },
            "train": {"steps": 3, "batch_size": 4, "lr": 1e-3, "device": "cpu"},
            "validate": {"metric": "loss", "every_steps": 3},
        },
        "test",
    )


def test_from_pixels_eye_writer_and_trunk_learn_together(
    folder: Path, coco: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    network = FocusNet(FocusConfig(size=eye_small.SIZE, layers=9, heads=2, patch=14, places=3, head=(4, 4, 4)))
    frozen = {name: value.clone() for name, value in network.state_dict().items()}
    monkeypatch.setattr(eye_task, "open_focus", lambda: SimpleNamespace(network=network))
    both = train_to_end(from_pixels(folder, coco), tmp_path / "run", PhotoWriter)
    both.save_pretrained(tmp_path / "out")
    eye = EyeLearner.from_pretrained(tmp_path / "out" / "eye").eye
    assert (eye.config.tuned_blocks, eye.config.tuned_rank) == (2, 3)
    assert {name.split(".")[1] for name in eye.tuning.names} == {"6", "7"}
    assert all(added.abs().sum() > 0 for added in eye.tuning.added().values())
    torch.testing.assert_close(network.state_dict(), frozen)
    before = EyeLearner.from_pretrained(folder / "eye").eye
    assert not torch.equal(before.whole[0].weight, eye.whole[0].weight)


def test_photos_need_an_eye_that_learns(folder: Path, coco: Path) -> None:
    data = PhotoWriterData(folder=folder, photos=coco, eye=folder / "eye", decoder=folder / "decoder")
    with pytest.raises(InvalidValue, match="for an eye that learns"):
        PhotoWriterTask(PhotoWriterSection(), data)
