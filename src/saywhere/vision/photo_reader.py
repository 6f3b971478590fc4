"""Read photos in a process of its own: one that crashes a decoder, or keeps it busy for minutes, ends only that.

    reader = PhotoReader(timeout_s=60)
    reader.read("odd.jpg")          # InvalidValue: crashed what reads it, or took too long; the next one is read anew

The process is started when it is first needed, reads one photo after another, and ends with the one that started it.
"""

from __future__ import annotations

import os
import selectors
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, BinaryIO, cast

from PIL import Image

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.vision.photo import read_photo

_HEAD = struct.Struct("<cIIQ")
"""What comes, two numbers, and how many bytes follow. To the reader: a path or a content. From it: that it is ready, a
photo with width and height, or why there is none, with the length of the reason before the hint."""
_PATH, _CONTENT, _READY, _PHOTO, _REFUSED = b"p", b"c", b"r", b"i", b"x"
_AT_ONCE = 1 << 20
_START_S = 120.0


class _NoAnswer(Exception):
    """The process has ended (ended: how), or did not answer in time."""

    def __init__(self, ended: int | None) -> None:
        self.ended = ended
        super().__init__()


class NoReader(RuntimeError):
    """What reads photos could not be started. Not a SaywhereError: no photo is to blame, and the work must end."""

    def __init__(self, module: str, ended: int | None) -> None:
        self.module, self.ended = module, ended
        how = f"did not start within {_START_S:g} s" if ended is None else f"ended at its start (exit code {ended})"
        super().__init__(f"what reads photos {how}: {sys.executable} -m {module}")


class PhotoReader:
    """timeout_s: for one photo. module: what is run; it calls `serve`."""

    _process: subprocess.Popen[bytes] | None = None

    def __init__(self, timeout_s: float = 60.0, module: str = __name__) -> None:
        if not timeout_s > 0:
            raise InvalidValue("timeout", f"is {timeout_s:g} s, not above 0")
        self.timeout_s, self.module = timeout_s, module

    def read(self, photo: bytes | str | Path) -> Image.Image:
        """A photo as `read_photo` gives it, RGB and upright; InvalidValue or InvalidFile if it cannot be read, NoReader
        if none can."""
        is_path = not isinstance(photo, bytes)
        asked = os.fsencode(photo) if isinstance(photo, str | Path) else photo
        process = self._started()
        try:
            _send(_pipe(process.stdin), _PATH if is_path else _CONTENT, asked)
            kind, first, second, content = self._answer(process, self.timeout_s)
        except (_NoAnswer, BrokenPipeError) as error:
            raise self._trouble(error) from error
        if kind == _PHOTO:
            return Image.frombytes("RGB", (first, second), content)
        reason, hint = content[:first].decode(), content[first:].decode()
        if isinstance(photo, bytes):
            raise InvalidValue("photo", reason, hint)
        raise InvalidFile(photo, reason, hint)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def __del__(self) -> None:
        self.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command, pipe = [sys.executable, "-m", self.module], subprocess.PIPE
            # Of its own session: Ctrl-C is for the one that started it, with which it ends.
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, start_new_session=True)
            try:
                self._answer(self._process, _START_S)
            except _NoAnswer as error:
                self.close()
                raise NoReader(self.module, error.ended) from error
        return self._process

    def _trouble(self, error: Exception) -> InvalidValue:
        ended = error.ended if isinstance(error, _NoAnswer) else None
        if isinstance(error, BrokenPipeError) and self._process is not None:
            ended = self._process.wait()
        self.close()
        if ended is None:
            return InvalidValue("photo", f"takes more than {self.timeout_s:g} s to read")
        how = f"signal {-ended}" if ended < 0 else f"exit code {ended}"
        return InvalidValue("photo", f"crashed what reads photos ({how})")

    def _answer(self, process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, int, int, bytes]:
        until = time.monotonic() + timeout_s
        head = self._bytes(process, _HEAD.size, until)
        kind, first, second, size = _HEAD.unpack(head)
        return kind, first, second, self._bytes(process, size, until)

    def _bytes(self, process: subprocess.Popen[bytes], count: int, until: float) -> bytes:
        found, out = bytearray(), _pipe(process.stdout)
        with selectors.DefaultSelector() as waiting:
            waiting.register(out, selectors.EVENT_READ)
            while len(found) < count:
                if not waiting.select(max(0.0, until - time.monotonic())):
                    raise _NoAnswer(None)
                part = os.read(out.fileno(), min(_AT_ONCE, count - len(found)))
                if not part:
                    raise _NoAnswer(process.wait())
                found += part
        return bytes(found)


def serve(read: Callable[[bytes | Path], Image.Image] = read_photo) -> None:
    """The life of the process: photos that are asked for on standard input go to standard output."""
    # Of its own, so that nothing that a decoder prints comes between.
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _send(answers, _READY, b"")
    while head := asked.read(_HEAD.size):
        kind, _, _, size = _HEAD.unpack(head)
        content = asked.read(size)
        try:
            image = read(Path(os.fsdecode(content)) if kind == _PATH else content)
        except (InvalidFile, InvalidValue) as error:
            reason = error.reason.encode("utf-8", "replace")
            _send(answers, _REFUSED, reason + error.hint.encode("utf-8", "replace"), len(reason))
        else:
            _send(answers, _PHOTO, image.tobytes(), *image.size)


def _send(pipe: BinaryIO, kind: bytes, content: bytes, first: int = 0, second: int = 0) -> None:
    pipe.write(_HEAD.pack(kind, first, second, len(content)))
    # An unbuffered pipe may take only a part at a time.
    rest = memoryview(content)
    while rest:
        rest = rest[pipe.write(rest) :]
    pipe.flush()


def _pipe(pipe: IO[bytes] | None) -> BinaryIO:
    if pipe is None:
        raise InvalidValue("photo reader", "has no pipes")
    return cast(BinaryIO, pipe)


if __name__ == "__main__":
    serve()
