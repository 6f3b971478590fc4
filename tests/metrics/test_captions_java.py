"""METEOR through its real Java program where it is installed; and its ways to fail, and SPICE's, with a stand-in."""

from __future__ import annotations

import importlib.util
import json
import shutil
import stat
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from saywhere.core.errors import InvalidValue, MissingDependency
from saywhere.metrics.captions import Meteor, MeteorTool, Spice, ToolFailed, caption_scores, meteor, spice
from saywhere.metrics.captions._java import find_java, java_major

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="needs a Java runtime")
needs_meteor = pytest.mark.skipif(
    shutil.which("java") is None or importlib.util.find_spec("pycocoevalcap") is None,
    reason="needs Java and the package pycocoevalcap (pip install 'saywhere[java]')",
)
ONE, ITS = {1: "a dog"}, {1: ["a dog", "the dog"]}


@pytest.fixture(scope="module")
def tool() -> Iterator[MeteorTool]:
    """The real program, started once: that takes most of the time."""
    with MeteorTool() as running:
        yield running


@needs_meteor
def test_meteor_equals_the_reference_on_every_image_and_on_the_corpus(
    tool: MeteorTool, shared: Callable[[str], Path]
) -> None:
    vectors = json.loads(shared("vectors/caption_metrics.json").read_text(encoding="utf-8"))
    candidates = {row["image_id"]: row["test"] for row in vectors["rows"]}
    references = {row["image_id"]: row["refs"] for row in vectors["rows"]}
    scores = meteor(candidates, references, tokenized=True, tool=tool)
    assert scores["corpus"]["METEOR"] == pytest.approx(vectors["corpus"]["METEOR"], abs=1e-4)
    each = [scores["per_item"][item]["METEOR"] for item in candidates]
    assert each == pytest.approx(vectors["per_image"]["METEOR"], abs=1e-4)


@needs_meteor
def test_meteor_survives_odd_captions_and_keeps_their_order(tool: MeteorTool) -> None:
    candidates = {
        "empty": "",
        "bars": "a ||| dog |||||| runs",
        "lines": "a dog\nruns\u2028fast\x00",
        "signs": "café 😀 \ud800 „x“",
        "same": "a dog runs",
        "nothing alike": "seven blue boats",
    }
    references = {item: ["a dog runs", "", "||| z"] for item in candidates}
    metric = Meteor(tool=tool)
    for item, text in candidates.items():
        metric.update({item: text}, {item: references[item]}, tokenized=True)
    scores = {item: values["METEOR"] for item, values in metric.compute()["per_item"].items()}
    assert scores["same"] == max(scores.values()) == pytest.approx(1.0)
    assert scores["bars"] == pytest.approx(scores["same"])
    assert scores["empty"] == scores["nothing alike"] == scores["signs"] == 0
    assert 0 < scores["lines"] < 1


def _program(path: Path, body: str) -> str:
    """A stand-in for `java`: a Python script that is given the same arguments and pipes."""
    path.write_text(f"#!{sys.executable}\nimport json, sys, time\n" + textwrap.dedent(body), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


# Answers every question like METEOR does: 0.5 for each caption, 0.25 for all.
ANSWERING = """
    for line in sys.stdin:
        if line.startswith("EVAL"):
            print("0.5\\n" * line.count("|||") + "0.25", flush=True)
        else:
            print("1.0 2.0", flush=True)
"""


@pytest.fixture
def meteor_folder(tmp_path: Path) -> Path:
    for name in ("meteor-1.5.jar", "data/paraphrase-en.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_a_flood_of_complaints_and_of_captions_blocks_nothing(meteor_folder: Path) -> None:
    noisy = _program(meteor_folder / "java", "sys.stderr.write('x' * 3_000_000)\n" + textwrap.dedent(ANSWERING))
    candidates = dict.fromkeys(range(3000), "a dog " * 50)
    references = {i: ["the dog " * 50] for i in range(3000)}
    with MeteorTool(java=noisy, folder=meteor_folder) as running:
        scores = meteor(candidates, references, tokenized=True, tool=running)
    assert scores["corpus"] == {"METEOR": 0.25}
    assert [values["METEOR"] for values in scores["per_item"].values()] == [0.5] * 3000


@pytest.mark.parametrize(
    ("body", "patience_s", "complaint"),
    [
        ("sys.exit('Out of memory')", 60, "ended .exit status.*Out of memory"),
        ("time.sleep(60)", 0.1, "gave no answer for 0.1 s"),
        ("sys.stdin.readline(); print('Error: no caption', flush=True); time.sleep(60)", 60, "refused a caption"),
        ("[print('nonsense\\n' * 9, flush=True) for line in sys.stdin]", 60, "gave no number"),
        ("sys.stdin.readline(); print('1.0', flush=True)", 60, "ended"),
    ],
)
def test_a_program_that_ends_hangs_or_babbles_is_an_error_with_its_last_words(
    meteor_folder: Path, body: str, patience_s: float, complaint: str
) -> None:
    bad = _program(meteor_folder / "java", body)
    with (
        MeteorTool(java=bad, folder=meteor_folder, patience_s=patience_s) as running,
        pytest.raises(ToolFailed, match=f"METEOR.*{complaint}"),
    ):
        meteor(ONE, ITS, tool=running)


def test_a_closed_program_says_so_and_may_be_closed_again(meteor_folder: Path) -> None:
    running = MeteorTool(java=_program(meteor_folder / "java", ANSWERING), folder=meteor_folder)
    running.close()
    running.close()
    with pytest.raises(InvalidValue, match="closed"):
        meteor(ONE, ITS, tool=running)


def test_a_java_that_cannot_be_started_is_an_error(meteor_folder: Path) -> None:
    with pytest.raises(ToolFailed, match="could not be started"):
        MeteorTool(java=str(meteor_folder / "no-java"), folder=meteor_folder)
    with pytest.raises(ToolFailed, match="does not run"):
        java_major(str(meteor_folder / "no-java"))


def test_missing_parts_are_named_with_the_way_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingDependency, match=r"METEOR needs meteor-1.5.jar and data/paraphrase-en.gz"):
        MeteorTool(folder=tmp_path)
    with pytest.raises(MissingDependency, match=r"SPICE needs spice-1.0.jar"):
        spice(ONE, ITS, folder=tmp_path)
    (tmp_path / "spice-1.0.jar").touch()
    with pytest.raises(MissingDependency, match=r"stanford-corenlp-3.6.0-models.jar.*scene_graph_f"):
        spice(ONE, ITS, folder=tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingDependency, match=r"METEOR needs a Java runtime.*PATH"):
        find_java("METEOR")


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    own = _program(tmp_path / "bin" / "java", "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java("METEOR") == own


@pytest.mark.parametrize(("said", "major"), [('java version "1.8.0_401"', 8), ('openjdk version "17.0.15"', 17)])
def test_the_version_of_java_is_read_in_both_of_its_spellings(tmp_path: Path, said: str, major: int) -> None:
    assert java_major(_program(tmp_path / "java", f"sys.stderr.write({said!r})")) == major


@pytest.fixture
def spice_folder(tmp_path: Path) -> Path:
    for name in ("spice-1.0.jar", "lib/stanford-corenlp-3.6.0.jar", "lib/stanford-corenlp-3.6.0-models.jar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


# Scores a caption by the share of its words that are in any reference, and answers in reverse order.
SPICE_LIKE = """
    if sys.argv[1] == "-version":
        sys.exit(sys.stderr.write('openjdk version "11.0.2"') and 0)
    items = json.load(open(sys.argv[sys.argv.index("spice-1.0.jar") + 1]))
    def f(item):
        words = item["test"].split()
        return sum(any(w in r.split() for r in item["refs"]) for w in words) / len(words) if words else None
    rows = [{"image_id": i["image_id"], "scores": {"All": {"f": f(i)}}} for i in reversed(items)]
    json.dump(rows, open(sys.argv[sys.argv.index("-out") + 1], "w"))
"""


def test_spice_hands_over_captions_and_brings_the_scores_back_to_their_ids(spice_folder: Path) -> None:
    java = _program(spice_folder / "java", SPICE_LIKE)
    candidates: dict[int | str, str] = {"é": "a dog", 7: "a cat", "none": ""}
    references: dict[int | str, list[str]] = {"é": ["A dog!"], 7: ["the dog", "a boat"], "none": ["x"]}
    scores = spice(candidates, references, java=java, folder=spice_folder)
    assert scores["per_item"] == {"é": {"SPICE": 1.0}, 7: {"SPICE": 0.5}, "none": {"SPICE": 0.0}}
    assert scores["corpus"]["SPICE"] == pytest.approx(0.5)
    metric = Spice(java=java, folder=spice_folder)
    for item in candidates:
        metric.update({item: candidates[item]}, {item: references[item]})
    assert metric.compute() == scores


@pytest.mark.parametrize(
    ("body", "error", "complaint"),
    [
        ("""sys.stderr.write('java version "17.0.1"')""", MissingDependency, r"version 8 to 14 \(this one is 17\)"),
        ("""sys.stderr.write('version "11"'); sys.exit(len(sys.argv) > 2)""", ToolFailed, "ended with exit status 1"),
        ("sys.stderr.write('who knows')", ToolFailed, "did not tell its version"),
        (
            """
            sys.stderr.write('version "11"')
            if "-out" in sys.argv:
                open(sys.argv[sys.argv.index("-out") + 1], "w").write("[]")
            """,
            ToolFailed,
            "cannot be read",
        ),
    ],
)
def test_spice_that_fails_says_why(spice_folder: Path, body: str, error: type[Exception], complaint: str) -> None:
    java = _program(spice_folder / "java", body)
    with pytest.raises(error, match=complaint):
        spice(ONE, ITS, java=java, folder=spice_folder)


def test_asking_for_spice_without_its_parser_does_not_silently_give_something_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("saywhere.metrics.captions._spice.find_tool_folder", lambda name, needed_for: tmp_path)
    with pytest.raises(MissingDependency, match="SPICE"):
        caption_scores(ONE, ITS, ["bleu", "spice"])
