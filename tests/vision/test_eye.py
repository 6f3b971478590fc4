"""The eye on tiny random weights: shapes, frames, batches, runtimes that agree, and what it refuses."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from saywhere.core import InvalidValue, UnknownName
from saywhere.vision.eye import Eye, EyeConfig, EyeEncoder, EyeNet, TrunkNet, ready_to_tune, tuned_states, tuned_trunk
from saywhere.vision.focus import FocusConfig, FocusNet
from saywhere.vision.runtime import PRECISION_VARIABLE, PRECISIONS, Runtime, looking_precision, open_runtime
from saywhere.vision.things import Namer

CONFIG = EyeConfig(size=24, heads=3, layers=1, text_size=10, tap=1, input_px=32, patch_px=8, cell_size=6)
TRUNK = FocusConfig(size=24, layers=3, heads=3, patch=8, places=3, head=(4, 4, 4))


@pytest.fixture
def eye() -> Eye:
    torch.manual_seed(0)
    network = FocusNet(TRUNK)
    for values in (network.whole, network.whole_place, network.places):
        torch.nn.init.normal_(values)
    return Eye(TrunkNet(network, CONFIG), EyeNet(CONFIG)).eval()


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def opened(eye: Eye, cache: Path, kind: str, key: str = "eye") -> Runtime:
    return open_runtime(lambda: eye, key, torch.zeros(1, 32, 32, 3, dtype=torch.uint8), cache, kind)


@pytest.fixture
def encoder(eye: Eye, tmp_path: Path) -> EyeEncoder:
    return EyeEncoder(opened(eye, tmp_path, "torch"), CONFIG, "0" * 64)


def test_a_look_gives_a_vector_of_text_for_every_patch_and_for_the_whole(encoder: EyeEncoder) -> None:
    view = encoder.look(photo(50, 30))
    assert view.patches.shape == (8, 8, 10)
    assert view.whole.shape == (10,)
    assert view.attention is not None
    assert view.attention.shape == (8, 8)
    assert view.attention.sum() == pytest.approx(1)


def test_patches_lie_where_the_frame_says(encoder: EyeEncoder) -> None:
    """A change in the lower right corner changes that corner's patch most."""
    before = photo(64, 64)
    after = before.copy()
    after.paste((255, 0, 0), (48, 48, 64, 64))
    change = np.abs(encoder.look(after).patches - encoder.look(before).patches).sum(axis=-1)
    assert np.divmod(change.argmax(), 16)[0] == 3
    assert change[6:, 6:].sum() == pytest.approx(change.reshape(4, 2, 4, 2).sum(axis=(1, 3)).max())


def test_a_photo_looks_the_same_alone_and_among_others(encoder: EyeEncoder) -> None:
    photos = [photo(50, 30, seed) for seed in range(3)]
    together = encoder.look_many(photos)
    for one, view in zip(photos, together, strict=True):
        np.testing.assert_allclose(encoder.look(one).patches, view.patches, atol=1e-5)


def test_the_trunk_gives_the_colours_of_cells_beside_hidden_states(eye: Eye) -> None:
    torch.manual_seed(1)
    pixels = torch.randint(0, 256, (2, 32, 32, 3), dtype=torch.uint8)
    with torch.no_grad():
        trunk_states = eye.trunk(pixels)
        cells = pixels.reshape(2, 8, 4, 8, 4, 3).float().mean(dim=(2, 4))
    assert trunk_states.shape == (2, 17, CONFIG.trunk_size)
    # The second patch of the first row, its lower left cell.
    expected = (cells[:, 1, 2] - eye.trunk.mean[:, 0, 0]) / eye.trunk.spread[:, 0, 0]
    torch.testing.assert_close(trunk_states[:, 2, 24 + 6 : 24 + 9], expected)


def test_openvino_gives_the_numbers_that_torch_gives_whatever_the_batch(eye: Eye, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    by_torch, by_openvino = (opened(eye, tmp_path, kind) for kind in ("torch", "openvino"))
    for count in (1, 3):
        pixels = np.random.default_rng(count).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
        for ours, theirs in zip(by_torch(pixels), by_openvino(pixels), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_what_openvino_converted_is_kept_by_its_key_and_not_even_made_again(eye: Eye, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    opened(eye, tmp_path, "openvino")
    (kept,) = tmp_path.glob("*.xml")
    example = torch.zeros(1, 32, 32, 3, dtype=torch.uint8)
    open_runtime(lambda: pytest.fail("is made again"), "eye", example, tmp_path, "openvino")
    assert list(tmp_path.glob("*.xml")) == [kept]
    opened(eye, tmp_path, "openvino", "another eye")
    assert len(list(tmp_path.glob("*.xml"))) == 2


def test_compiling_says_nothing_in_the_log(eye: Eye, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("openvino")
    opened(eye, tmp_path, "openvino")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_compiling_reports_to_nobody(eye: Eye, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = pytest.importorskip("openvino_telemetry.main")
    sent: list[object] = []
    monkeypatch.setattr(telemetry.Telemetry, "__init__", lambda *given, **named: sent.append(given))
    opened(eye, tmp_path, "openvino")
    assert sent == []


@pytest.mark.parametrize(("told", "torchs", "allowed"), [("", 1, "1"), ("1", 2, "1"), ("2,1", 1, "1"), ("0", 2, "2")])
def test_openvino_computes_with_the_threads_of_its_worker(
    eye: Eye, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, torchs: int, allowed: str
) -> None:
    openvino = pytest.importorskip("openvino")
    compiled: list[dict[str, str]] = []
    real = openvino.Core.compile_model

    def listening(core: Any, model: Any, device: str, how: dict[str, str]) -> Any:
        compiled.append(how)
        return real(core, model, device, how)

    monkeypatch.setattr(openvino.Core, "compile_model", listening)
    monkeypatch.setattr(torch, "get_num_threads", lambda: torchs)
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    opened(eye, tmp_path, "openvino")
    assert [how["INFERENCE_NUM_THREADS"] for how in compiled] == [allowed]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs a system that tells where threads may run")
def test_workers_of_one_thread_may_run_on_any_core(eye: Eye, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    allowed = os.sched_getaffinity(0)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    run = opened(eye, tmp_path, "openvino")
    inputs, looked, told = np.zeros((64, 32, 32, 3), np.uint8), threading.Event(), threading.Event()

    def look() -> None:
        for _ in range(20):
            run(inputs)
        looked.set()
        told.wait()

    worker = threading.Thread(target=look)
    worker.start()
    assert worker.native_id is not None
    seen = set()
    while not looked.is_set():
        seen.add(frozenset(os.sched_getaffinity(worker.native_id)))
    told.set()
    worker.join()
    assert seen == {frozenset(allowed)}, "it binds the one who calls to the first core"


def test_an_unknown_runtime_is_refused_by_name(eye: Eye, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="openvino"):
        opened(eye, tmp_path, "openvin")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: EyeConfig(size=10, heads=3),
        lambda: EyeConfig(input_px=225),
        lambda: EyeConfig(tap=-1),
        lambda: TrunkNet(FocusNet(TRUNK), EyeConfig(size=24, heads=3, tap=3, input_px=32, patch_px=8)),
    ],
)
def test_a_shape_that_cannot_be_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvalidValue):
        wrong()


def test_an_eye_beside_a_detector_finds_nothing_itself_and_sees_the_same(encoder: EyeEncoder) -> None:
    namer = Namer(("cat",) * CONFIG.kinds, np.eye(CONFIG.kinds, 10, dtype=np.float32), least=0.0)
    alone, beside = (EyeEncoder(encoder.run, CONFIG, "0" * 64, namer=namer, finds=finds) for finds in (True, False))
    first, second = alone.look(photo(50, 30)), beside.look(photo(50, 30))
    assert first.found
    assert not second.found
    np.testing.assert_array_equal(first.patches, second.patches)
    assert first.present == second.present


@pytest.mark.parametrize(
    ("wanted", "kind", "able", "expected"),
    [
        ("", "", ["FP32", "INT8"], "int8"),
        ("", "", ["FP32"], "f32"),
        ("", "torch", ["FP32", "INT8"], "f32"),
        ("f32", "", ["FP32", "INT8"], "f32"),
        ("f32", "torch", [], "f32"),
        ("int8", "", ["INT8"], "int8"),
        ("bf16", "openvino", ["BF16"], "bf16"),
        ("bf16", "", ["FP32", "INT8"], "which this processor lacks"),
        ("int8", "", ["FP32"], "which this processor lacks"),
        ("int8", "torch", ["INT8"], "which torch does not look in here"),
        ("f16", "", ["INT8"], "precision 'f16'"),
    ],
)
def test_the_precision_of_looking_is_what_the_environment_says_or_the_fastest(
    monkeypatch: pytest.MonkeyPatch, wanted: str, kind: str, able: list[str], expected: str
) -> None:
    openvino = pytest.importorskip("openvino")
    monkeypatch.setattr(openvino, "Core", lambda: SimpleNamespace(get_property=lambda *_: able))
    monkeypatch.setenv(PRECISION_VARIABLE, wanted)
    if expected in PRECISIONS:
        assert looking_precision(kind) == expected
        return
    with pytest.raises((InvalidValue, UnknownName), match=expected):
        looking_precision(kind)


def test_matrices_in_bytes_see_nearly_the_same_alone_and_among_others(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64)).eval()

    class Bytes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = layers

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            seen: torch.Tensor = self.layers(pixels.float() / 255)
            return seen

    example = torch.zeros(1, 5, 64, dtype=torch.uint8)
    exact, rough = (open_runtime(Bytes, "b", example, tmp_path, "openvino", name) for name in ("f32", "int8"))
    assert len(list(tmp_path.glob("*.xml"))) == 2
    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 64), dtype=np.uint8)
    (ours,), (theirs,) = exact(pixels), rough(pixels)
    assert 0 < np.abs(ours - theirs).max() < 0.02
    np.testing.assert_allclose(rough(pixels[1:2])[0][0], theirs[1], atol=1e-5)


def test_features_of_another_precision_are_other_features(encoder: EyeEncoder) -> None:
    rough = EyeEncoder(encoder.run, CONFIG, "0" * 64, precision="bf16")
    assert "precision" not in encoder.fingerprint
    assert rough.fingerprint == encoder.fingerprint | {"precision": "bf16"}


@pytest.fixture
def tuned() -> tuple[FocusNet, EyeNet]:
    """A trunk, and an eye that learnt something of the last of its blocks."""
    torch.manual_seed(3)
    network, net = FocusNet(TRUNK), EyeNet(replace(CONFIG, tuned_blocks=1, tuned_rank=2))
    for up in net.tuning.up:
        torch.nn.init.normal_(up)
    return network.eval(), net.eval()


def test_what_an_eye_learnt_of_its_trunk_is_added_to_its_last_blocks(tuned: tuple[FocusNet, EyeNet]) -> None:
    network, net = tuned
    pixels = torch.randint(0, 256, (2, 32, 32, 3), dtype=torch.uint8)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    plain = TrunkNet(network, net.config)
    with torch.no_grad():
        untuned, learning = plain(pixels), tuned_states(plain, net.tuning, pixels)
        at_rest = tuned_trunk(network, net)
        torch.testing.assert_close(at_rest(pixels), learning)
    assert (learning - untuned).abs().max() > 0.01
    changed = {name for name, value in network.state_dict().items() if not torch.equal(value, before[name])}
    assert {name.split(".")[1] for name in changed} == {"1"}
    assert {name.split(".")[2] for name in changed} == {"query", "key", "value", "out", "widen", "narrow"}


def test_learning_reaches_the_trunk_and_reads_only_the_patches_that_are_kept(tuned: tuple[FocusNet, EyeNet]) -> None:
    network, net = tuned
    pixels = torch.randint(0, 256, (2, 32, 32, 3), dtype=torch.uint8)
    trunk = TrunkNet(network, net.config).requires_grad_(requires_grad=False)
    rows = torch.tensor([[0, 3, 9], [15, 2, 1]])
    states = tuned_states(trunk, net.tuning, pixels, rows)
    assert states.shape == (2, 4, CONFIG.trunk_size)
    net(states).whole.sum().backward()
    assert all(up.grad is not None and up.grad.abs().sum() > 0 for up in net.tuning.up)
    assert trunk.embed.weight.grad is None


def test_an_eye_that_learnt_nothing_of_its_trunk_may_begin_to(eye: Eye) -> None:
    wider = ready_to_tune(eye.net, 2, 3)
    assert (wider.config.tuned_blocks, wider.config.tuned_rank) == (2, 3)
    states = torch.randn(1, 17, CONFIG.trunk_size)
    torch.testing.assert_close(wider(states).cells, eye.net(states).cells)
    assert all(not added.any() for added in wider.tuning.added().values())
    assert ready_to_tune(wider, 1, 1) is wider


def test_more_blocks_than_there_are_cannot_be_tuned() -> None:
    with pytest.raises(InvalidValue, match="cannot tune"):
        replace(CONFIG, tuned_blocks=3, tuned_rank=1)
