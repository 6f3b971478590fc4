"""Where surroundings are taken to be, what the eye learns from it, and what the writer is told to put into words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from saywhere.language.surroundings import kinds_by_word
from saywhere.models.eye.encoder import EyeLearner, namer_of
from saywhere.models.eye.surroundings import SurroundingWords, surroundings_loss, surroundings_shown
from saywhere.models.eye.task import EyeData, EyeSection, EyeTask
from saywhere.models.patchioner.photo_texts import PhotoTextBatch, with_surroundings
from saywhere.models.patchioner.photo_writing import PhotoWriterSection
from tests.models import eye_small

SKY, GRASS, WATER = (kinds_by_word()[word] for word in ("sky", "grass", "ocean"))


def test_a_patch_shows_what_it_means_most_above_the_others() -> None:
    # Five patches and the kinds sky, grass, and trees, of which nobody speaks; the last patch lies under a thing.
    cosines = torch.tensor([[[0.9, 0.1, 0.8], [0.6, 0.3, 0.9], [0.3, 0.4, 0.1], [0.6, 0.5, 0.4], [0.9, 0.0, 0.0]]])
    spoken_of = torch.tensor([[True, True, False]])
    shown = surroundings_shown(cosines, spoken_of, torch.tensor([[True, True, True, True, False]]))
    assert shown.tolist() == [[0, -1, 1, 1, -1]]
    assert surroundings_shown(cosines, torch.zeros(1, 3, dtype=torch.bool), torch.ones(1, 5).bool()).eq(-1).all()


def test_words_of_a_kind_count_together() -> None:
    words = SurroundingWords(("dog", "sky", "lawn", "grass"))
    said = torch.tensor([[3.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 0.0]])
    assert words.spoken_of(said)[:, [SKY, GRASS]].tolist() == [[False, True], [True, False]]


def learner() -> EyeLearner:
    """A small eye whose words are sky, grass and dog."""
    torch.manual_seed(0)
    vectors = torch.eye(eye_small.TEXT)
    small = eye_small.small_eye()
    return EyeLearner(small.eye, {"dog": vectors[2]}, {"sky": vectors[0], "grass": vectors[1], "dog": vectors[2]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("told")
    eye_small.save_captions(out, ("train",) * 6 + ("validation",) * 2)
    return out


def test_learning_makes_patches_mean_what_they_are_taken_to_show(folder: Path) -> None:
    task = EyeTask(EyeSection(layers=1, heads=2, start="random", surroundings=1.0), EyeData(folder=folder))
    items = task.train_items()
    batch = task.collate([items[i] for i in range(4)], torch.Generator().manual_seed(0))
    eye = learner()
    said = torch.zeros(len(batch.captioned), 3)
    said[:, :2] = 1
    batch = replace(batch, words=said)
    before, shown = surroundings_loss(eye, eye(batch.inputs), batch)
    assert {SKY, GRASS} <= set(shown.unique().tolist()) <= {-1, SKY, GRASS}
    covered = (batch.shown > 0).flatten(2).any(dim=2)
    assert shown[covered].eq(-1).all()
    optimizer = torch.optim.Adam(eye.parameters(), lr=1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        surroundings_loss(eye, eye(batch.inputs), batch)[0].backward()
        optimizer.step()
    assert surroundings_loss(eye, eye(batch.inputs), batch)[0] < 0.8 * before


def test_without_words_for_them_there_is_nothing_to_learn(folder: Path) -> None:
    task = EyeTask(EyeSection(layers=1, heads=2, start="random"), EyeData(folder=folder))
    items = task.train_items()
    batch = task.collate([items[i] for i in range(2)], torch.Generator().manual_seed(0))
    small = eye_small.small_eye()
    loss, shown = surroundings_loss(small, small(batch.inputs), batch)
    assert not loss.any()
    assert shown.eq(-1).all()


def test_the_last_text_of_a_photo_is_about_patches_that_show_its_kind() -> None:
    grid, texts = 4, 2
    even = torch.full((2 * texts, 2 * grid, 2 * grid), 1.0)
    words = torch.tensor([[2, 5, 3], [2, 6, 3], [2, 5, 3], [2, 7, 3]])
    none = torch.zeros(2 * texts, dtype=torch.long)
    batch = PhotoTextBatch(torch.zeros(2, 17, 8), even, none > 0, none - 1, words)
    rows = torch.tensor([[0, 1, 5, 15], [2, 3, 4, 8]])
    shown = torch.tensor([[SKY, SKY, GRASS, -1], [GRASS, GRASS, -1, GRASS]])
    kinds = torch.tensor([SKY, WATER])
    filled = with_surroundings(batch, shown, rows, kinds, torch.Generator().manual_seed(0))
    cells = filled.cells.view(2, texts, 2 * grid, 2 * grid)
    assert cells[:, 0].eq(1).all()
    inside = cells[0, 1] > 0
    assert inside.any()
    assert not inside[2:].any()
    assert not inside[:, 4:].any()
    assert float(cells[0, 1].sum()) == pytest.approx(1)
    assert filled.words.view(2, texts, -1)[1, 1].eq(0).all()
    assert filled.words.view(2, texts, -1)[0, 1].tolist() == [2, 6, 3]


def test_surroundings_need_an_eye_that_learns() -> None:
    with pytest.raises(ValueError, match="an eye that learns beside"):
        PhotoWriterSection(surroundings=True)


def test_a_saved_eye_knows_which_of_its_words_mean_surroundings(tmp_path: Path) -> None:
    eye = learner()
    eye.save_pretrained(tmp_path)
    again = EyeLearner.from_pretrained(tmp_path)
    assert again.around == ("sky", "grass")
    shows = namer_of(again).shows_surroundings(torch.eye(eye_small.TEXT)[:3].numpy())
    assert shows.tolist() == [True, True, False]
