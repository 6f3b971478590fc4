"""The engine on a real Ray cluster of two nodes on this machine: the same results, and clear words when it fails."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("ray.data")

import ray

from saywhere.build.mapped_texts import MappedEncoder
from saywhere.build.memory import build_memory
from saywhere.build.prepare import prepare_sentences
from saywhere.cli.mapped_lbm import lbm_mapped
from saywhere.core import InvalidValue
from saywhere.engine import Engine, FailedShard, Function, OneProcess, Options, ShardError, ray_data
from saywhere.engine.ray_data import NoCluster, RayData
from tests.build.batch.kill_batch import contents, paint, run_tiny
from tests.engine.stages import DeadlySetup, DyingStage, EmbedLetters, NeverReady, Squared, threads
from tests.vision import odd_reader

ROOT = Path(__file__).resolve().parents[2]
# Ray warns of itself, and leaves sockets to its own end.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    from ray.cluster_utils import Cluster

    before = os.environ.get("PYTHONPATH", "")
    # Workers begin elsewhere: they must find the stages of the tests.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), before])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        made.add_node(num_cpus=1)
        ray.init(made.address, log_to_driver=False)
    yield
    ray.shutdown()
    made.shutdown()
    os.environ["PYTHONPATH"] = before


def test_results_are_those_of_other_engines_in_order_and_bad_shards_are_values(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    waits: list[int] = []
    options = Options(
        tmp_path / "kept", keep_errors=True, progress=lambda *at: told.append(at), on_wait=lambda: waits.append(1)
    )
    found = list(RayData(workers=2).map(Squared(tmp_path), [0, 1, 13, 3], options))
    assert found == [0, 1, FailedShard("13", "number: 13 brings bad luck"), 9]
    assert told == [("working", done, 4) for done in (1, 2, 3, 4)]
    assert waits
    # What is kept is not done again.
    (tmp_path / "shards").unlink()
    assert list(RayData().map(Squared(tmp_path), [0, 1, 3], options)) == [0, 1, 9]
    assert not (tmp_path / "shards").exists()


def test_a_shard_that_kills_its_worker_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    found = list(RayData(workers=1).map(Squared(tmp_path), [2, 15, 4], Options(keep_errors=True)))
    assert found == [4, FailedShard("15", "3 workers died over it"), 16]


def test_a_defect_and_a_stage_that_is_never_ready_end_the_work(tmp_path: Path) -> None:
    with pytest.raises(ShardError, match="14: ZeroDivisionError: a defect"):
        list(RayData(workers=1).map(Squared(tmp_path), [14], Options(keep_errors=True)))
    with pytest.raises(ShardError, match="1: model: is not there"):
        list(RayData(workers=1).map(NeverReady(), [1], Options(keep_errors=True)))


def test_a_stage_that_kills_its_workers_while_they_get_ready_ends_the_work() -> None:
    with pytest.raises(ShardError, match="1: 3 workers died while they got ready"):
        list(RayData(workers=1).map(DeadlySetup(), [1], Options(keep_errors=True)))


@pytest.mark.parametrize("kept", [True, False])
def test_of_many_shards_at_once_those_beside_a_deadly_one_are_not_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setattr(ray_data, "_MOST_BLOCKS", 1)
    options = Options(tmp_path / "kept" if kept else None, keep_errors=True)
    found = list(RayData(workers=1).map(Squared(tmp_path), [2, 15, 4], options))
    assert found == [4, FailedShard("15", "3 workers died over it"), 16]
    # What is kept is not done again.
    assert (tmp_path / "shards").read_text().split().count("2") == (1 if kept else 4)


def test_workers_compute_with_the_threads_of_their_cores() -> None:
    assert list(RayData(workers=1).map(Function(threads), [1])) == ["1"]


def test_a_batch_on_two_nodes_writes_the_files_of_one_process(tmp_path: Path) -> None:
    paint(tmp_path / "photos", 7)
    run_tiny(tmp_path / "photos", tmp_path / "here")
    run_tiny(tmp_path / "photos", tmp_path / "there", RayData(workers=2))
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_a_batch_whose_workers_are_killed_at_random_writes_the_files_of_one_that_was_not(tmp_path: Path) -> None:
    paint(tmp_path / "photos", 14)
    run_tiny(tmp_path / "photos", tmp_path / "here")
    (tmp_path / "doomed").mkdir()
    for part, moment in zip(np.random.default_rng(0).choice(7, 2, replace=False), ("before", "after"), strict=True):
        (tmp_path / "doomed" / f"{part}-{moment}").touch()
    run_tiny(tmp_path / "photos", tmp_path / "there", RayData(workers=2), stage=DyingStage)
    assert list((tmp_path / "doomed").iterdir()) == []  # Each of them came.
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_memory_banks_prepared_texts_and_scores_are_those_of_one_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    lines = {" ".join("".join(rng.choice(letters, rng.integers(2, 9))) for _ in range(4)) for _ in range(1_500)}
    (tmp_path / "texts.txt").write_text("\n".join(sorted(lines)), encoding="utf-8")
    boxes = [np.sort(rng.random((n, 2, 2)), axis=1).reshape(n, 4) for n in rng.integers(1, 6, 600)]
    pairs = list(zip(boxes[:300], boxes[300:], strict=True))

    def made(engine: Engine, name: str) -> dict[str, bytes]:
        folder = tmp_path / name
        encoder = MappedEncoder("letters", engine, EmbedLetters)
        build_memory([tmp_path / "texts.txt"], folder / "bank.safetensors", encoder)
        prepare_sentences(folder / "texts", [tmp_path / "texts.txt"], encoder, lambda *_: None)
        (folder / "scores").write_bytes(lbm_mapped(pairs, 1, "paper", engine).tobytes())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    here = made(OneProcess(), "here")
    assert made(RayData(workers=2), "there") == here
    assert len(here) > 3


def test_photos_that_crash_or_stall_the_decoder_are_rows_of_a_batch_that_goes_on(tmp_path: Path) -> None:
    paint(tmp_path / "photos", 3)
    (tmp_path / "photos" / "crash.jpg").write_bytes(odd_reader.CRASHING)
    (tmp_path / "photos" / "slow.jpg").write_bytes(odd_reader.SLOW)
    out = tmp_path / "out"
    run_tiny(tmp_path / "photos", out, RayData(workers=1), odd_reader.__name__, odd_reader.TIMEOUT_S)
    rows = [row for path in sorted(out.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert {row["key"]: row["error"] for row in rows if row["error"]} == {
        "crash.jpg": "crashed what reads photos (signal 6)",
        "slow.jpg": "takes more than 2 s to read",
    }
    assert len(rows) == 5


def test_no_shards_and_no_sense(tmp_path: Path) -> None:
    assert list(RayData().map(Squared(tmp_path), [])) == []
    with pytest.raises(InvalidValue, match="not at least 0"):
        RayData(workers=-1)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9"])
def test_an_address_where_nothing_answers_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda *_, **__: pytest.fail("Ray tries for minutes"))
    with pytest.raises(NoCluster, match=rf"the Ray cluster {address}: nothing answers there \(Connection refused\)"):
        list(RayData(address).map(Squared(tmp_path), [1]))


def test_what_ray_says_against_a_cluster_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def refuse(*_: object, **__: object) -> None:
        started = "was started with:\n    Ray: {}\n    Python: 3.11.7\n"
        raise RuntimeError(f"Version mismatch: The cluster {started.format('2.9.0')}This {started.format('2.8.0')}")

    monkeypatch.setattr(ray, "init", refuse)
    message = (
        r": Version mismatch: The cluster was started with: Ray: 2\.9\.0 Python: 3\.11\.7 This was started with: Ray: "
    )
    with socket.create_server(("127.0.0.1", 0)) as head, pytest.raises(NoCluster, match=message):
        list(RayData(f"127.0.0.1:{head.getsockname()[1]}").map(Squared(tmp_path), [1]))
