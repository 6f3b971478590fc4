"""`saywhere build trace-benchmark`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from saywhere.build.trace_benchmark import read_trace_benchmark
from saywhere.cli.benchmark import trace_benchmark
from saywhere.core import InvalidFile, InvalidValue, Narrative, Trace, Utterance
from saywhere.formats import coco_captions, localized_narratives
from saywhere.formats.coco_captions import CaptionRecord
from tests.build.endpoint import Reply, served

app = typer.Typer()
app.command()(trace_benchmark)


@pytest.fixture
def narratives(tmp_path: Path) -> Path:
    """The file of narratives in a folder like a world's; its last line cannot be read."""
    caption = "There is a dog. The image is blurry."
    words = caption.split()
    utterances = tuple(Utterance(word, float(i), i + 1.0) for i, word in enumerate(words))
    trace = Trace([[0.5, 0.5, t / 10] for t in range(80)])
    path = tmp_path / "world" / "narratives.jsonl"
    localized_narratives.write(path, [Narrative("7", caption, utterances, trace, "made_up", "3")])
    with path.open("a") as file:
        file.write("{}\n")
    return path


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_file_and_the_folder_of_a_world_give_the_same_benchmark(narratives: Path, tmp_path: Path) -> None:
    said = run(narratives, "--out", tmp_path / "a.jsonl")
    run(narratives.parent, "--out", tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    (sample,) = read_trace_benchmark(tmp_path / "a.jsonl")
    assert getattr(sample, "caption", None) == "A dog"
    assert "dropped: about the photo itself" in said
    about = json.loads((tmp_path / "a.jsonl.about.json").read_text())
    assert (about["sentences"], about["samples"], about["unreadable records"]) == (2, 1, 1)
    assert about["dropped"] == {"about the photo itself": 1}
    assert about["rewritten_by"] == "rules"
    assert about["made_by"]["inputs"]["narratives.jsonl"].startswith("sha256:")


def test_a_model_rewrites_and_its_answers_are_kept_without_the_key(
    narratives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "not-for-others")
    with served(lambda question, number: Reply("A good dog")) as server:
        options = ("--llm", server.url, "--model", "small", "--key-variable", "MY_KEY")
        said = run(narratives, "--out", tmp_path / "a.jsonl", *options)
        said += run(narratives, "--out", tmp_path / "a.jsonl", *options)
        assert len(server.asked) == 2
        assert server.headers[0]["Authorization"] == "Bearer not-for-others"
    assert [getattr(s, "caption", None) for s in read_trace_benchmark(tmp_path / "a.jsonl")] == ["A good dog"] * 2
    written = b"".join(path.read_bytes() for path in tmp_path.glob("a.jsonl*"))
    assert b"not-for-others" not in written + said.encode()


def test_an_endpoint_without_a_model_is_refused(narratives: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="belong together"):
        run(narratives, "--out", tmp_path / "a.jsonl", "--llm", "http://127.0.0.1:1/v1")


def test_a_file_without_narratives_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    coco_captions.write(tmp_path / "captions.json", [CaptionRecord(1, 1, "a dog")])
    with pytest.raises(InvalidFile, match="narratives are needed"):
        run(tmp_path / "captions.json", "--out", tmp_path / "a.jsonl")
    with pytest.raises(InvalidFile, match=r"without narratives\.jsonl"):
        run(tmp_path, "--out", tmp_path / "a.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["captions.json"]
