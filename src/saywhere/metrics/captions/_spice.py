"""SPICE (Anderson et al. 2016) through its own Java program.

pycocoevalcap carries the program but not the parser it needs: two files of Stanford CoreNLP 3.6.0, which its authors
offer for download. The program writes its result with the JavaScript engine that Java had up to version 14. Where that
is too much to ask, `scene_graph_f` is a score of the same kind.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from saywhere.core.errors import MissingDependency
from saywhere.metrics.captions._items import Accumulator, CaptionSet, Id, ScoreTable, caption_set, joined, table
from saywhere.metrics.captions._java import ToolFailed, find_java, find_tool_folder, java_major, require_files

NAME = "SPICE"
_PROGRAM = "spice-1.0.jar"
_PARSER = ["lib/stanford-corenlp-3.6.0.jar", "lib/stanford-corenlp-3.6.0-models.jar"]
_GET_PARSER = (
    "run `python -m pycocoevalcap.spice.get_stanford_models`, or put both files from "
    "stanford-corenlp-full-2015-12-09.zip of nlp.stanford.edu there; scene_graph_f is a score that needs no Java"
)
_LAST_JAVA = 14


def spice(
    candidates: Mapping[Id, str],
    references: Mapping[Id, Sequence[str]],
    *,
    tokenized: bool = False,
    java: str | None = None,
    folder: Path | None = None,
) -> ScoreTable[Id]:
    """Score "SPICE", 0 … 1; the corpus has the mean. Needs Java 8 to 14 and some 8 GB of memory.

    java: the program to run, found by itself if not given. folder: where spice-1.0.jar and its lib/ are.
    """
    return _finish([_tally(caption_set(candidates, references, tokenized=tokenized))], java=java, folder=folder)


class Spice(Accumulator[CaptionSet[int | str]]):
    """`spice` over captions that come in batches; the Java program runs in `compute`."""

    def __init__(self, *, java: str | None = None, folder: Path | None = None) -> None:
        super().__init__(_tally, partial(_finish, java=java, folder=folder))


def _tally(captions: CaptionSet[Id]) -> CaptionSet[Id]:
    return captions


def _finish(
    tallies: Sequence[CaptionSet[Id]], *, java: str | None = None, folder: Path | None = None
) -> ScoreTable[Id]:
    captions = joined(tallies)
    folder = folder or find_tool_folder("spice", NAME)
    require_files(folder, [_PROGRAM], NAME, "pip install --force-reinstall pycocoevalcap")
    require_files(folder, _PARSER, NAME, _GET_PARSER)
    java = java or find_java(NAME)
    if (major := java_major(java)) > _LAST_JAVA:
        raise MissingDependency(
            f"a Java runtime of version 8 to {_LAST_JAVA} (this one is {major})",
            NAME,
            "install one, for example openjdk-11-jre-headless, and point JAVA_HOME to it",
        )
    each = _run(captions, java, folder)
    return table([NAME], [float(np.mean(each))], captions.ids, [[score] for score in each])


def _run(captions: CaptionSet[Id], java: str, folder: Path) -> list[float]:
    # Our own numbers stand for the ids, so that any id survives the way there and back.
    questions = [
        {"image_id": number, "test": one, "refs": others}
        for number, (one, others) in enumerate(zip(captions.candidates, captions.references, strict=True))
    ]
    with tempfile.TemporaryDirectory(prefix="saywhere-spice-") as scratch:
        asked, answered = Path(scratch) / "captions.json", Path(scratch) / "scores.json"
        asked.write_text(json.dumps(questions), encoding="ascii")
        command = [
            java,
            "-Xmx8G",
            "-Dfile.encoding=UTF-8",
            "-jar",
            _PROGRAM,
            str(asked),
            "-out",
            str(answered),
            "-silent",
        ]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            raise ToolFailed(NAME, "could not be started", str(error)) from error
        if done.returncode != 0 or not answered.is_file():
            raise ToolFailed(NAME, f"ended with exit status {done.returncode}", done.stderr.strip()[-500:])
        return _scores(answered.read_text(encoding="utf-8"), len(questions))


def _scores(answer: str, n: int) -> list[float]:
    """The F-scores over all tuples, in the order of the questions."""
    try:
        rows = [(row["image_id"], row["scores"]["All"]["f"]) for row in json.loads(answer)]
        # null stands for 0 / 0: the references of the item have no tuple at all.
        by_number = {int(number): 0.0 if f is None else float(f) for number, f in rows}
        return [by_number[number] for number in range(n)]
    except (ValueError, KeyError, TypeError) as error:
        raise ToolFailed(NAME, f"gave an answer that cannot be read: {error!r}", answer[:200]) from error
