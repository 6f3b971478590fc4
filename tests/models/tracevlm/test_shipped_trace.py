"""The small TraceVLM that comes with the package: its files fit each other, it answers, and its card is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import saywhere
from saywhere.assets import MOBILE_SAM, is_cached
from saywhere.loading import needed_assets
from saywhere.models.registry import TRACE, embedded
from saywhere.models.tracevlm.batch import collate_prepared
from saywhere.models.tracevlm.examples import answered, asked
from saywhere.models.tracevlm.small_face import SmallTraceLook, SmallTraceModel
from saywhere.models.tracevlm.small_model import SmallTraceVLM
from saywhere.models.tracevlm.small_photos import PhotoFeatures
from tests.models.tracevlm import small_body as small

PHOTO = Path(__file__).resolve().parents[3] / "examples" / "photos" / "cat.jpg"
MOST_BYTES = 25_000_000
with_assets = pytest.mark.skipif(
    not all(map(is_cached, needed_assets(TRACE))), reason="needs the trunk and the detector in the cache"
)


def test_it_is_small_and_its_card_stands_beside_it() -> None:
    folder = embedded(TRACE)
    assert sum(path.stat().st_size for path in folder.iterdir()) < MOST_BYTES
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert all(word in card for word in ("pseudo-trajector", "keep_out.txt", "seed 0", "## Limits"))


def test_it_opens_and_reads_a_trajectory_with_perception() -> None:
    network = SmallTraceVLM.from_pretrained(embedded(TRACE))
    gammas = [float(block.get_parameter("gamma").detach().abs().mean()) for block in network.perception.blocks]
    assert min(gammas) > 0
    seen = small.photo()
    windows = torch.randn(101, network.small.state_size, generator=torch.Generator().manual_seed(0)).numpy()
    photo = PhotoFeatures(windows, seen.boxes, seen.classes, seen.scores)
    talk = (asked("caption", small.trajectory((0.2, 0.3), (0.6, 0.6))), answered("a dog"))
    with torch.no_grad():
        scores = network(collate_prepared(network.reader, [talk], [1], *network.body.inputs.places([photo])))
    assert bool(torch.isfinite(scores).all())


@pytest.fixture(scope="module")
def look() -> SmallTraceLook:
    model = saywhere.load(TRACE)
    assert isinstance(model, SmallTraceModel)
    assert model.name == TRACE
    return model.look(PHOTO)


@with_assets
def test_a_photo_gets_a_caption_an_answer_a_box_and_a_reply(look: SmallTraceLook) -> None:
    box = saywhere.Box(*look.view.found[0].box_xyxy)
    trace = saywhere.Trace([(0.3, 0.4, 0.0), (0.6, 0.6, 1.0)])
    assert all(caption.text for caption in look.captions([saywhere.WholeImage(), box, trace]))
    assert look.answer("What is this?", box).text
    assert look.find_all(["the cat"])[0] is not None
    assert look.chat().say("What is this?", saywhere.Point(0.5, 0.5)).text


@with_assets
@pytest.mark.skipif(not is_cached(MOBILE_SAM), reason="needs MobileSAM in the cache")
def test_what_is_named_is_cut_out_within_about_its_box(look: SmallTraceLook) -> None:
    (box,) = look.find_all(["the cat"])
    assert box is not None
    inside = look.segment("the cat").values.astype(bool)
    rows, cols = np.nonzero(inside)
    outside = (cols / inside.shape[1] < box.x1 - 0.1) | (rows / inside.shape[0] < box.y1 - 0.1)
    assert outside.mean() < 0.02
    assert inside.mean() > 0.02
