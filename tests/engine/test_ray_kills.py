"""A node is taken away, and the process that drives is killed, while a Ray cluster works: the same files in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray.data")

import ray

from saywhere.engine.ray_data import RayData
from tests.build.batch.kill_batch import contents, paint, run_tiny
from tests.engine.stages import WaitingStage

ROOT = Path(__file__).resolve().parents[2]
PARTS = 7
# Ray warns of itself, and leaves sockets to its own end.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head on which the driver is, and nothing is looked at; nodes are added by the test."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def here(tmp_path: Path) -> dict[str, bytes]:
    """The files of a run that was never killed, of the photos that are in `photos`."""
    paint(tmp_path / "photos", 2 * PARTS)
    run_tiny(tmp_path / "photos", tmp_path / "here")
    return contents(tmp_path / "here")


def _until(there: Callable[[], object], most_s: float = 120.0) -> None:
    end = time.monotonic() + most_s
    while not there():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def test_a_node_that_is_lost_while_it_works_costs_no_part(cluster: Any, tmp_path: Path, here: dict[str, bytes]) -> None:
    nodes = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
    ray.init(cluster.address, log_to_driver=False)
    began, go = tmp_path / "began", tmp_path / "go"
    began.mkdir()

    def lose() -> None:
        """The node on which the last part was begun, while that part waits there."""
        _until(lambda: len({path.read_text() for path in began.iterdir()} - {""}) == 2)
        last = max(began.iterdir(), key=lambda path: path.stat().st_mtime_ns).read_text()
        [lost] = [node for node in nodes if node.node_id == last]
        cluster.remove_node(lost, allow_graceful=False)
        go.touch()

    loser = threading.Thread(target=lose)
    loser.start()
    try:
        run_tiny(tmp_path / "photos", tmp_path / "there", RayData(workers=2), stage=WaitingStage)
    finally:
        loser.join()
    assert go.exists()
    assert sum(node["Alive"] for node in ray.nodes()) == 2
    assert contents(tmp_path / "there") == here


_DRIVES = """
import sys
from pathlib import Path
from saywhere.engine.ray_data import RayData
from tests.build.batch.kill_batch import run_tiny
from tests.engine.stages import WaitingStage
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    run_tiny(folder / "photos", folder / "there", RayData(sys.argv[2], workers=1), stage=WaitingStage)
"""


def test_a_driver_that_was_killed_is_begun_again_by_the_same_command(
    cluster: Any, tmp_path: Path, here: dict[str, bytes]
) -> None:
    cluster.add_node(num_cpus=1)
    began, go = tmp_path / "began", tmp_path / "go"
    began.mkdir()
    (tmp_path / "free").write_text("3")  # So many parts wait for nothing.
    script = tmp_path / "drives.py"
    script.write_text(_DRIVES)
    command = [sys.executable, str(script), str(tmp_path), cluster.address]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _until(lambda: len(list(began.iterdir())) == 4 or driver.poll() is not None)
    finally:
        driver.kill()
    assert driver.wait() == -signal.SIGKILL
    kept = {path.name for path in (tmp_path / "there" / "parts").glob("part-*.json")}
    assert len(kept) == 3
    assert not (tmp_path / "there" / "manifest.json").exists()
    times = {name: (tmp_path / "there" / "parts" / name).stat().st_mtime_ns for name in kept}
    go.touch()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert contents(tmp_path / "there") == here
    # What was done is not done again.
    assert {name: (tmp_path / "there" / "parts" / name).stat().st_mtime_ns for name in kept} == times
