"""What tells a photo from others: beside what the eye says, windows and things found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saywhere.build.matching import PART, MatchingScale, build_matching, install_matching, matching_recipe
from saywhere.core import Frame
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.learn.registry import check_sections, make_task
from saywhere.models.answerer.config import AnswererConfig
from saywhere.models.common.recalls import recalls
from saywhere.models.patchioner.eyes import AlignedView
from saywhere.models.patchioner.matching import Matcher, MatcherConfig, MatchNet, SecondNet, windows_of
from saywhere.models.patchioner.seer_config import read_config, save_config
from saywhere.vision.things import NamedThings
from saywhere.vision.view import View
from tests.models import eye_small
from tests.models.test_patchioner_seer import CONFIG

SHAPE = MatcherConfig(states_size=16, text_size=6, width=8, heads=2, layers=1, feed_forward=8)
QUIET: Any = lambda *_: None  # noqa: E731 - a progress that says nothing


def matcher(seed: int = 0) -> Matcher:
    torch.manual_seed(seed)
    network = MatchNet(SHAPE)
    torch.nn.init.normal_(network.told.weight)
    return Matcher(network)


def seen(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(17, 16)).astype(np.float32), rng.normal(size=6).astype(np.float32)


def things(count: int) -> NamedThings:
    boxes = np.tile(np.array([0.1, 0.1, 0.4, 0.5], np.float32), (count, 1))
    return NamedThings(np.eye(6, dtype=np.float32)[[2] * count], boxes, np.full(count, 0.8, np.float32))


def test_before_it_learnt_it_says_what_the_eye_says() -> None:
    states, contrast = seen()
    told = Matcher(MatchNet(SHAPE)).vector(states, contrast, things(2))
    np.testing.assert_allclose(told, contrast / np.linalg.norm(contrast), atol=1e-6)


def test_it_reads_windows_and_things_and_how_many_there_are() -> None:
    states, contrast = seen()
    ours = matcher()
    told = [ours.vector(states, contrast, found) for found in (None, things(1), things(2))]
    told.append(ours.vector(seen(1)[0], contrast, None))
    for one in told:
        assert np.linalg.norm(one) == pytest.approx(1, abs=1e-5)
    for a in range(4):
        for b in range(a):
            assert np.abs(told[a] - told[b]).max() > 1e-4
    np.testing.assert_allclose(told[0], ours.vector(states, contrast, NamedThings.none(6)), atol=1e-6)
    with pytest.raises(InvalidValue, match="cannot read"):
        ours.vector(states[:, :4], contrast, None)


def test_a_second_look_is_read_by_a_network_that_learnt_to_and_its_places_count() -> None:
    states, contrast = seen()
    torch.manual_seed(0)
    network = MatchNet(replace(SHAPE, auxiliary_size=5))
    assert network.second is not None
    torch.nn.init.normal_(network.second.told.weight)
    ours = Matcher(network)
    assert ours.reads_auxiliary
    second = np.random.default_rng(3).normal(size=(17, 5)).astype(np.float32)
    told = ours.vector(states, contrast, None, second)
    assert np.abs(told - ours.vector(states, contrast, None, 0 * second)).max() > 1e-4
    swapped = np.concatenate([second[:1], second[1:][::-1]])
    assert np.abs(told - ours.vector(states, contrast, None, swapped)).max() > 1e-4
    for wrong in (None, second[:, :3]):
        with pytest.raises(InvalidValue, match="this matcher reads 5"):
            ours.vector(states, contrast, None, wrong)
    by_eye, by_second = network.each(*(torch.from_numpy(part)[None] for part in parts_of(states, contrast, second)))
    summed = by_eye + 0.6 * by_second
    np.testing.assert_allclose(told, (summed / summed.norm()).detach().numpy()[0], atol=1e-6)
    np.testing.assert_allclose(by_eye.detach().numpy()[0], contrast / np.linalg.norm(contrast), atol=1e-6)
    plain = matcher()
    np.testing.assert_allclose(plain.vector(states, contrast, None, second), plain.vector(states, contrast, None))


def parts_of(states: Any, contrast: Any, second: Any) -> tuple[Any, ...]:
    none = NamedThings.none(6)
    return (*windows_of(states), contrast, none.vectors, none.boxes_xyxy, none.scores, second)


def test_a_second_look_is_read_as_if_it_had_mean_0_and_spread_1() -> None:
    torch.manual_seed(0)
    second = SecondNet(replace(SHAPE, auxiliary_size=5)).eval()
    wholes = 3 * torch.randn(200, 5) + torch.arange(5)
    things = torch.zeros(1, 0, 6), torch.zeros(1, 0, 4), torch.zeros(1, 0)
    seen = torch.randn(1, 5, 5)
    before = second(seen, *things)
    second.spread_as(wholes)
    assert (second(seen, *things) - before).abs().max() > 1e-3
    told = second(seen * (wholes.std(dim=0) + 0.02) + wholes.mean(dim=0), *things)
    torch.testing.assert_close(told, before, atol=1e-4, rtol=1e-4)


def test_windows_are_means_with_their_centres() -> None:
    grid = np.arange(400, dtype=np.float32).reshape(20, 20)
    states = np.concatenate([[[-1.0]], grid.reshape(-1, 1)]).astype(np.float32)
    windows, centres = windows_of(states)
    assert windows.shape == (101, 1)
    assert windows[0, 0] == -1
    assert windows[1 + 11, 0] == grid[2:4, 2:4].mean()
    np.testing.assert_allclose(centres[11], [0.15, 0.15])
    np.testing.assert_allclose(centres[1], [0.15, 0.05])
    with pytest.raises(InvalidValue, match="square"):
        windows_of(states[:-1])


def test_it_is_saved_and_opened_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    states, contrast = seen()
    ours = matcher()
    ours.save_pretrained(tmp_path, int8=False)
    again = Matcher.from_pretrained(tmp_path)
    np.testing.assert_allclose(again.vector(states, contrast, None), ours.vector(states, contrast, None), atol=1e-2)
    (tmp_path / "config.json").write_text((tmp_path / "config.json").read_text().replace("width", "wide"))
    with pytest.raises(InvalidFile, match="wide"):
        Matcher.from_pretrained(tmp_path)


@pytest.mark.parametrize("kind", [MatcherConfig, AnswererConfig])
def test_configs_of_older_weights_lack_what_was_added_since(kind: Any) -> None:
    shape = {"answers": 3, "region_size": 9, "states_size": 16, "text_size": 6}
    now = kind(**{name: shape[name] for name in shape if name in kind.__dataclass_fields__})
    before = {name: value for name, value in now.to_dict().items() if name not in kind.added}
    assert kind.added
    assert kind.from_dict(before) == now
    del before["width"]
    with pytest.raises(InvalidValue, match="does not say width"):
        kind.from_dict(before)


def test_a_view_asks_it_once() -> None:
    states, contrast = seen()
    rng = np.random.default_rng(2)
    patches = rng.normal(size=(4, 4, 6)).astype(np.float32)
    view = View(Frame.of_grid(4, 4), patches, patches.mean(axis=(0, 1)), states=states, contrast=contrast)
    asked: list[int] = []

    class Counting(Matcher):
        def vector(self, states: Any, contrast: Any, things: Any, auxiliary: Any = None) -> Any:
            asked.append(len(states))
            return super().vector(states, contrast, things, auxiliary)

    opened = Counting(matcher().network)
    aligned = AlignedView(view, matcher=lambda: opened)
    np.testing.assert_allclose(aligned.contrast(), aligned.contrast())
    assert len(asked) == 1
    assert np.abs(aligned.contrast() - AlignedView(view).contrast()).max() > 1e-4


def test_a_text_finds_its_photo_by_the_nearest_vector() -> None:
    photos = torch.eye(4)
    texts = torch.tensor([[1.0, 0, 0, 0], [0.9, 0.5, 0, 0], [0, 0, 0.2, 0.9]])
    assert recalls(photos, texts, [0, 1, 2], (1, 2)) == {"r1": pytest.approx(1 / 3), "r2": 1.0}


@pytest.mark.parametrize("second", [False, True])
def test_it_learns_to_tell_photos_apart_and_is_put_into_a_model(second: bool, tmp_path: Path) -> None:
    folder = tmp_path / "eye-data"
    eye_small.save_captions(folder, ("train",) * 24 + ("validation",) * 6)
    if second:
        eye_small.save_auxiliary(folder)
    scale = MatchingScale(steps=30, batch=12, rate=1e-2, query_layers=0, bf16=False)
    part = build_matching(folder, folder / "eye", tmp_path / "made", scale, QUIET)
    task: Any = make_task(matching_recipe(folder, tmp_path / "made", scale))
    model = task.build(torch.Generator())
    before = task.validate(model.eval())
    if not second:
        assert before["r1"] == before["eye_r1"]
    model.network.load_state_dict(Matcher.from_pretrained(part).network.state_dict())
    assert task.validate(model.eval())["r1"] > before["r1"]
    model_folder = tmp_path / "model"
    model_folder.mkdir()
    save_config(model_folder, CONFIG | {"encoder": "eye", "detector": True})
    install_matching(part, model_folder)
    assert read_config(model_folder).matching == PART
    assert read_config(model_folder).auxiliary is second
    with pytest.raises(InvalidFile, match="already"):
        install_matching(model_folder / PART, model_folder)
    with pytest.raises(InvalidValue, match="goes with the encoder"):
        save_config(model_folder, CONFIG | {"matching": PART})
    with pytest.raises(InvalidValue, match="goes with matching"):
        save_config(model_folder, CONFIG | {"auxiliary": True})


def test_photos_without_captions_teach_by_what_questions_say_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "eye-data"
    eye_small.save_captions(folder, ("train",) * 20 + ("validation",) * 6, untold=8)
    counts = []
    for name, statements in (("without", False), ("with", True)):
        scale = MatchingScale(steps=2, batch=12, statements=statements, bf16=False)
        build_matching(folder, folder / "eye", tmp_path / name, scale, QUIET)
        task: Any = make_task(matching_recipe(folder, tmp_path / name, scale))
        counts.append(len(task.train_items()))
    assert counts == [12, 20]


def test_it_may_begin_where_another_one_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "eye-data"
    eye_small.save_captions(folder, ("train",) * 24 + ("validation",) * 6)
    scale = MatchingScale(steps=20, batch=12, rate=1e-2, bf16=False)
    part = build_matching(folder, folder / "eye", tmp_path / "made", scale, QUIET)
    again: Any = make_task(matching_recipe(folder, tmp_path / "made", replace(scale, start=part)))
    begun = again.build(torch.Generator()).network
    torch.testing.assert_close(begun.state_dict(), Matcher.from_pretrained(part).network.state_dict())
    matcher().save_pretrained(tmp_path / "other")
    other: Any = make_task(matching_recipe(folder, tmp_path / "made", replace(scale, start=tmp_path / "other")))
    with pytest.raises(InvalidValue, match="another shape"):
        other.build(torch.Generator())


def test_the_recipe_is_checked_before_work_starts(tmp_path: Path) -> None:
    for name in ("windows", "queries"):
        (tmp_path / name).mkdir()
    _, data = check_sections(matching_recipe(tmp_path, tmp_path, MatchingScale(query_layers=2)), "test")
    assert data.windows == tmp_path / "windows"
    assert data.queries == tmp_path / "queries"
    _, data = check_sections(matching_recipe(tmp_path, tmp_path, MatchingScale(query_layers=0)), "test")
    assert data.queries is None
    both = matching_recipe(tmp_path, tmp_path, MatchingScale(query_layers=2, statements=True))
    with pytest.raises(InvalidFile, match="token by token"):
        check_sections(both, "test")
