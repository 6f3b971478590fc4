"""What a box shows: one of a detector's kinds, or none of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saywhere.build.naming import NamingScale, _Data, empty_places, fit, install_naming, naming_measures
from saywhere.core import Box, InvalidFile, InvalidValue, WholeImage
from saywhere.models.patchioner.eyes import AlignedView, Blend
from saywhere.models.patchioner.grounding import Grounder
from saywhere.models.patchioner.naming import (
    ABOUT,
    EVIDENCE,
    BoxNaming,
    NamingConfig,
    NamingNet,
    evidence,
    grown,
)
from saywhere.models.patchioner.seer_config import read_config, save_config
from saywhere.vision import View
from saywhere.vision.things import Namer
from saywhere.vision.view import Proposals
from tests.models.patchioner_seeing import ColourEncoder, photo, tags
from tests.models.test_patchioner_seer import CONFIG

NAMES = tags().names
SEEN = ColourEncoder().look(photo())
NAMER = Namer(NAMES, np.eye(3, dtype=np.float32)[: len(NAMES)])
LEFT, RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)


def view(places: Any = (LEFT, RIGHT), scores: Any = ((0.5, 0.1, 0.0), (0.02, 0.3, 0.0))) -> View:
    weighed = Proposals(np.array(places, np.float32).reshape(-1, 4), np.array(scores, np.float32), NAMES)
    return View(SEEN.frame, SEEN.patches, SEEN.whole, None, (), None, None, dict.fromkeys(NAMES, 0.5)).with_found(
        (), weighed
    )


def naming(seed: int = 0, names: tuple[str, ...] = NAMES, sharpness: float = 1.0) -> BoxNaming:
    torch.manual_seed(seed)
    return BoxNaming(NamingNet(NamingConfig(names, 4, sharpness)))


def told(chances: tuple[float, ...]) -> BoxNaming:
    """Says the same of every box: of each kind, and of none."""
    ours = naming()
    with torch.no_grad():
        for parameter in ours.network.parameters():
            parameter.zero_()
        ours.network.bias.copy_(torch.tensor(chances[:-1]).log())
        ours.network.none[-1].get_parameter("bias").fill_(float(np.log(chances[-1])))
    return ours


def test_evidence_is_what_places_say_of_a_box() -> None:
    known = evidence(np.array([LEFT, (0.0, 0.0, 1.0, 1.0)], np.float32), view(), NAMER)
    assert (known.of_kinds.shape, known.of_boxes.shape) == ((2, 3, EVIDENCE), (2, ABOUT))
    # The left half fits itself; the whole has an IoU of a half with each half.
    np.testing.assert_allclose(known.of_kinds[0, 0, :3], np.log(0.5 + 1e-3), atol=1e-5)
    np.testing.assert_allclose(known.of_kinds[1, 0, :3], np.log(0.5 * np.array([0.5, 0.25, 0.0625]) + 1e-3), atol=1e-5)
    both = 0.5**2 * 0.5**4 + 0.02**2 * 0.5**4
    assert known.of_kinds[1, 0, 3] == pytest.approx(np.log(both + 1e-3), abs=1e-5)
    # Anywhere in the photo the best score counts, and odds of a half are even.
    np.testing.assert_allclose(known.of_kinds[:, 1, 5], np.log(0.3 + 1e-3), atol=1e-5)
    np.testing.assert_allclose(known.of_kinds[..., 8], 0, atol=1e-6)


def test_without_any_place_there_is_evidence_all_the_same() -> None:
    known = evidence(np.array([LEFT, (0.3, 0.3, 0.3, 0.3)], np.float32), view((), np.zeros((0, 3))), NAMER)
    assert np.isfinite(known.of_kinds).all()
    assert np.isfinite(known.of_boxes).all()


def test_boxes_are_in_the_photo_and_have_an_area() -> None:
    boxes = grown(np.array([(-1, 0.5, 0.5, 0.5), (1, 1, 1, 1), LEFT], np.float32))
    assert ((boxes[:, :2] < boxes[:, 2:]).all(), boxes.min() >= 0, boxes.max() <= 1) == (True, True, True)
    np.testing.assert_allclose(boxes[2], LEFT, atol=1e-6)


def test_chances_sum_to_one_and_are_the_same_alone_and_among_others() -> None:
    boxes = np.array([LEFT, RIGHT, (0.1, 0.1, 0.3, 0.4)], np.float32)
    chances = naming().chances(boxes, view(), NAMER)
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-5)
    for box, row in zip(boxes, chances, strict=True):
        np.testing.assert_allclose(naming().chances(box[None], view(), NAMER)[0], row, atol=1e-5)


def test_it_names_boxes_in_place_of_claims_and_nothing_else() -> None:
    blend = Blend(whole=0.5, region=9.0)
    says = told((0.2, 0.7, 0.05, 0.05))
    plain, named = (AlignedView(view(), None, tags(), None, blend, NAMER, naming=one) for one in (None, lambda: says))
    regions = [Box(*LEFT), WholeImage()]
    before, after = plain.names(plain.weights(regions), regions), named.names(named.weights(regions), regions)
    assert before is not None
    assert after is not None
    np.testing.assert_array_equal(before.named[1], after.named[1])
    # Half of the grid: as loud as 9 + (0.5 - 9) / 2. The kinds share 0.95 of the name.
    expected = (9 + (0.5 - 9) / 2) * np.array([0.2, 0.7, 0.05]) @ tags().vectors
    np.testing.assert_allclose(after.named[0], expected, atol=1e-4)


def test_what_is_none_of_the_kinds_has_hardly_a_name() -> None:
    blend = Blend(whole=9.0, region=9.0)
    loud = []
    for none in (0.01, 0.97):
        rest = (1 - none) / 3
        says = told((rest, rest, rest, none))
        seen = AlignedView(view(), None, tags(), None, blend, NAMER, naming=lambda says=says: says)
        names = seen.names(seen.weights([Box(*LEFT)]), [Box(*LEFT)])
        assert names is not None
        loud.append(float(np.abs(names.named).sum()))
    assert loud[1] < 0.1 * loud[0]


@pytest.mark.parametrize(
    ("chances", "unlikely"),
    [
        ((0.1, 0.2, 0.1, 0.6), {NAMES[0], NAMES[2]}),  # likely none: what has less than 0.15 is hardly shown
        ((0.1, 0.4, 0.1, 0.4), set()),
        ((0.0001, 0.0001, 0.0001, 0.9997), set(NAMES)),
    ],
)
def test_what_likely_shows_none_of_the_kinds_hardly_shows_a_faint_one(
    chances: tuple[float, ...], unlikely: set[str]
) -> None:
    says = told(chances)
    seen = AlignedView(view(), None, tags(), None, Blend(), NAMER, naming=lambda: says)
    kinds = {*NAMES, "unicorn"}
    assert seen.unlikely(Box(*LEFT), kinds) == unlikely
    assert seen.unlikely(Box(*LEFT), set()) == set()
    assert seen.unlikely(WholeImage(), kinds) == set()
    assert AlignedView(view(), None, tags(), None, Blend(), NAMER).unlikely(Box(*LEFT), kinds) == set()


def test_a_place_that_is_doubtful_and_never_found_is_pointed_at() -> None:
    says = told((0.5, 0.3, 0.1, 0.1))
    seen = AlignedView(view(), None, tags(), None, Blend(), NAMER, naming=lambda: says)
    place = seen.likeliest_place(NAMES[1])
    assert place is not None
    assert (place.box_xyxy, place.name) == (RIGHT, NAMES[1])
    assert seen.likeliest_place(NAMES[2]) is None
    assert seen.likeliest_place("unicorn") is None
    assert AlignedView(view(), None, tags(), None, Blend(), NAMER).likeliest_place(NAMES[1]) is None
    vector = np.eye(3, dtype=np.float32)[1]
    assert Grounder(seen).find(f"a {NAMES[1]}", vector).box_xyxy == RIGHT


def test_a_kind_that_is_hardly_there_is_not_pointed_at_by_its_best_place() -> None:
    says = told((0.5, 0.3, 0.1, 0.1))
    base = view()
    absent = View(base.frame, base.patches, base.whole, None, (), None, None, dict.fromkeys(NAMES, 1e-3)).with_found(
        (), base.proposals
    )
    seen = AlignedView(absent, None, tags(), None, Blend(), NAMER, naming=lambda: says)
    assert Grounder(seen).find(f"a {NAMES[1]}", np.eye(3, dtype=np.float32)[1]).missed


def test_other_kinds_than_it_learnt_and_views_without_places_are_refused() -> None:
    boxes = np.array([LEFT], np.float32)
    with pytest.raises(InvalidValue, match="kinds that this part names"):
        naming(names=("a", "b", "c")).chances(boxes, view(), NAMER)
    with pytest.raises(InvalidValue, match="no places"):
        naming().chances(boxes, SEEN, NAMER)
    with pytest.raises(InvalidValue, match="does not know"):
        evidence(boxes, view(), Namer(NAMES[:2], np.eye(3, dtype=np.float32)[:2]))
    with pytest.raises(InvalidValue, match="no part that names"):
        AlignedView(view()).chances(boxes)


def test_saved_it_says_the_same_and_damaged_files_are_refused(tmp_path: Path) -> None:
    ours = naming()
    ours.save_pretrained(tmp_path)
    boxes = np.array([LEFT, RIGHT], np.float32)
    again = BoxNaming.from_pretrained(tmp_path)
    assert again.config == ours.config
    np.testing.assert_allclose(again.chances(boxes, view(), NAMER), ours.chances(boxes, view(), NAMER), atol=2e-3)
    config = (tmp_path / "config.json").read_text()
    for wrong in (config.replace('"width": 4', '"width": 5'), config.replace('"sharpness": 1.0', '"sharpness": -1.0')):
        (tmp_path / "config.json").write_text(wrong)
        with pytest.raises(InvalidFile):
            BoxNaming.from_pretrained(tmp_path)


@pytest.mark.parametrize("wrong", [{"names": ("a",)}, {"names": ("a", "a")}, {"width": 0}, {"sharpness": 0.0}])
def test_shapes_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="naming"):
        replace(NamingConfig(("a", "b")), **wrong)


def test_it_learns_kinds_and_that_there_is_none_and_how_sure_to_be() -> None:
    rng = np.random.default_rng(0)
    count, none = 900, len(NAMES)
    kinds = rng.integers(none + 1, size=count)
    # Three in four boxes are claimed by their kind; the rest, and empty places, look like nothing.
    claimed = (rng.random(count) < 0.75) & (kinds != none)
    of_kinds = rng.normal(0, 0.1, (count, none, EVIDENCE)).astype(np.float32)
    of_boxes = rng.normal(0, 0.1, (count, ABOUT)).astype(np.float32)
    of_kinds[claimed, kinds[claimed], 1] += 3
    of_boxes[claimed, 8] += 3
    data = _Data(torch.tensor(of_kinds), torch.tensor(of_boxes), torch.tensor(kinds), np.arange(count))
    network = fit(data, NamingConfig(("person", "cat", "dog")), NamingScale(epochs=40, width=4))
    measures = naming_measures(data, network)
    assert measures["named right"] > 0.8
    assert measures["empty places taken for none"] > 0.95
    with torch.no_grad():
        chances = network(data.of_kinds, data.of_boxes).softmax(dim=1)
    unclaimed = torch.tensor(~claimed)
    share = float((data.kinds[unclaimed] == none).float().mean())
    assert float(chances[unclaimed, none].mean()) == pytest.approx(share, abs=0.05)


def test_empty_places_lie_beside_boxes_or_are_none() -> None:
    places = empty_places(np.array([LEFT], np.float32), np.random.default_rng(0))
    assert len(places) == 2
    for left, top, right, bottom in places.tolist():
        common = max(0.0, min(right, 0.5) - left) * (bottom - top)
        assert common <= 0.1 * (right - left) * (bottom - top) + 1e-6
    assert empty_places(np.array([(0, 0, 1, 1)], np.float32), np.random.default_rng(0)).shape == (0, 4)


def test_a_part_is_put_into_a_model_that_has_an_eye_and_a_detector(tmp_path: Path) -> None:
    naming().save_pretrained(tmp_path / "naming")
    save_config(tmp_path / "model", CONFIG | {"encoder": "eye", "detector": True})
    install_naming(tmp_path / "naming", tmp_path / "model")
    assert read_config(tmp_path / "model").naming == "naming"
    assert BoxNaming.from_pretrained(tmp_path / "model" / "naming").config.names == NAMES
    with pytest.raises(InvalidValue, match="goes with"):
        save_config(tmp_path / "model", CONFIG | {"naming": "naming"})
