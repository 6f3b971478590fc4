"""METEOR 1.5 (Denkowski & Lavie 2014) through its own Java program, which comes with pycocoevalcap."""

from __future__ import annotations

import queue
import re
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO

from saywhere.core.errors import InvalidValue
from saywhere.metrics.captions._items import Accumulator, CaptionSet, Id, ScoreTable, caption_set, joined, table
from saywhere.metrics.captions._java import ToolFailed, find_java, find_tool_folder, require_files

NAME = "METEOR"
_SEPARATOR = " ||| "
# Three bars separate captions and a line break ends the question, so neither may be inside a caption.
_NOT_IN_A_CAPTION = re.compile(r"\|{3,}|[\x00-\x1f\x7f\x85\u2028\u2029]")


class MeteorTool:
    """A running METEOR program. Starting it takes some ten seconds, so keep it for several sets of captions.

        with MeteorTool() as tool:
            meteor(candidates, references, tool=tool)

    java: the program to run; found by itself if not given.
    patience_s: seconds without an answer after which the program counts as hung.
    """

    def __init__(self, *, java: str | None = None, folder: Path | None = None, patience_s: float = 300.0) -> None:
        folder = folder or find_tool_folder("meteor", NAME)
        needed = ["meteor-1.5.jar", "data/paraphrase-en.gz"]
        require_files(folder, needed, NAME, "pip install --force-reinstall pycocoevalcap")
        command = [java or find_java(NAME), "-Xmx2G", "-Dfile.encoding=UTF-8", "-jar", needed[0]]
        self._patience_s = patience_s
        self._lock = threading.Lock()
        # Complaints go to a file: nobody reads a second pipe, and a full one would stop the program.
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed in close())
        try:
            self._process = subprocess.Popen(
                [*command, "-", "-", "-stdio", "-l", "en", "-norm"],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
            )
        except OSError as error:
            self._complaints.close()
            raise ToolFailed(NAME, "could not be started", str(error)) from error
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> MeteorTool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the program. It cannot be used afterwards; closing twice does no harm."""
        if self._complaints.closed:
            return
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue  # an unsent question to a program that is gone; the pipe is closed all the same
        self._complaints.close()

    def score(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, list[float]]:
        """METEOR of all captions together, from added-up statistics, and of each one."""
        if self._complaints.closed:
            raise InvalidValue("METEOR program", "it was closed", "make a new MeteorTool")
        with self._lock:
            asked = [
                ["SCORE", *map(_clean, others), _clean(one)] for one, others in zip(candidates, references, strict=True)
            ]
            statistics = self._ask([_SEPARATOR.join(parts) for parts in asked], len(asked))
            if bad := [line for line in statistics if line.startswith("Error")]:
                raise ToolFailed(NAME, "refused a caption", bad[0])
            answers = self._ask([_SEPARATOR.join(["EVAL", *statistics])], len(asked) + 1)
        try:
            *each, together = [float(answer) for answer in answers]
        except ValueError as error:
            raise ToolFailed(NAME, "gave no number", str(error)) from error
        return together, each

    def _listen(self) -> None:
        """Take every answer off the pipe at once, so that neither side ever waits for the other to read."""
        output = self._process.stdout
        if output is not None:
            for line in output:
                self._answers.put(line)
        self._answers.put(None)

    def _ask(self, questions: list[str], n_answers: int) -> list[str]:
        try:
            if self._process.stdin is not None:
                for question in questions:
                    self._process.stdin.write(question.encode("utf-8", "replace") + b"\n")
                self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._failure("ended") from error
        return [self._answer() for _ in range(n_answers)]

    def _answer(self) -> str:
        try:
            line = self._answers.get(timeout=self._patience_s)
        except queue.Empty:
            raise self._failure(f"gave no answer for {self._patience_s:g} s") from None
        if line is None:
            raise self._failure("ended")
        return line.decode("utf-8", "replace").strip()

    def _failure(self, reason: str) -> ToolFailed:
        self._process.kill()
        status = self._process.wait()
        self._complaints.seek(0)
        complaint = self._complaints.read().decode("utf-8", "replace").strip()[-500:]
        self.close()
        return ToolFailed(NAME, f"{reason} (exit status {status})", complaint)


def meteor(
    candidates: Mapping[Id, str],
    references: Mapping[Id, Sequence[str]],
    *,
    tokenized: bool = False,
    tool: MeteorTool | None = None,
) -> ScoreTable[Id]:
    """Score "METEOR"; that of the corpus is not a mean, but from the statistics of all items. Needs Java."""
    return _finish([_tally(caption_set(candidates, references, tokenized=tokenized))], tool=tool)


class Meteor(Accumulator[CaptionSet[int | str]]):
    """`meteor` over captions that come in batches; the Java program runs in `compute`."""

    def __init__(self, *, tool: MeteorTool | None = None) -> None:
        super().__init__(_tally, partial(_finish, tool=tool))


def _tally(captions: CaptionSet[Id]) -> CaptionSet[Id]:
    return captions


def _finish(tallies: Sequence[CaptionSet[Id]], *, tool: MeteorTool | None = None) -> ScoreTable[Id]:
    captions = joined(tallies)
    if tool is not None:
        together, each = tool.score(captions.candidates, captions.references)
    else:
        with MeteorTool() as own:
            together, each = own.score(captions.candidates, captions.references)
    return table([NAME], [together], captions.ids, [[score] for score in each])


def _clean(text: str) -> str:
    # The original makes one space of two, once; so does this.
    return _NOT_IN_A_CAPTION.sub(" ", text).replace("  ", " ")
