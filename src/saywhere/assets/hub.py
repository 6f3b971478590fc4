"""The Hugging Face hub: whole folders by name, and single files of one fixed commit. All fetching goes through here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from saywhere.assets.registry import AssetFile, AssetUnavailable, Hub
from saywhere.core.errors import InvalidFile, InvalidValue, require

_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def is_repo_id(name: str) -> bool:
    """Whether this may be the name of a repository on the hub: owner/name."""
    return _REPO_ID.fullmatch(name) is not None


def local_folder(source: str | Path, patterns: Sequence[str], revision: str | None = None) -> Path:
    """A folder of this machine as it is, or the one on the hub of that name: fetched once, offline afterwards.

    source: a folder, or "owner/name". patterns: the files that are wanted from the hub. revision: branch, tag or commit
    there; main if not given.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise InvalidValue("revision", f"is {revision!r}, but {source} is a folder", "only the hub has revisions")
        return folder
    name = str(source)
    if not is_repo_id(name):
        raise InvalidFile(name, "is no folder, nor the name of a model on the hub", "owner/name")
    library = require("huggingface_hub", needed_for=f"fetching {name!r} from the hub", extra="models")
    errors = require("huggingface_hub.errors", needed_for=f"fetching {name!r} from the hub", extra="models")
    try:
        return Path(library.snapshot_download(name, revision=revision, allow_patterns=list(patterns)))
    except (OSError, ValueError, errors.HTTPError) as error:
        how = (
            f"connect to the network once (HF_HUB_OFFLINE unset), or bring the folder that `hf download {name}` makes "
            "and name it instead"
        )
        reason = f"is no folder here, and the hub does not give it: {_first_line(error)}"
        raise AssetUnavailable(name, reason, how) from error


def read_hub_file(name: str, hub: Hub, file: AssetFile, folder: Path) -> bytes:
    """The bytes of one file of the asset of this name, fetched by way of `folder` and checked against the registry."""
    library = require("huggingface_hub", needed_for=f"fetching the asset {name!r}", extra="models")
    errors = require("huggingface_hub.errors", needed_for=f"fetching the asset {name!r}", extra="models")
    try:
        path = Path(library.hf_hub_download(hub.repo, file.member, revision=hub.revision, local_dir=folder))
    except (OSError, errors.HTTPError) as error:
        reason = f"could not be fetched from the hub: {_first_line(error)}"
        raise AssetUnavailable(name, reason, _how_to_get(name, hub)) from error
    size = path.stat().st_size
    if size != file.size:
        raise InvalidFile(f"{hub.repo}@{hub.revision[:12]}", f"{file.member} has {size:,} bytes, not {file.size:,}")
    from saywhere.assets.wheel import checked

    return checked(path.read_bytes(), file, f"{hub.repo}@{hub.revision[:12]}", "the hub")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _how_to_get(name: str, hub: Hub) -> str:
    return (
        f"connect to the network once and run `saywhere assets fetch {name}` (it comes from huggingface.co/{hub.repo}; "
        "HF_ENDPOINT names a mirror, HF_TOKEN lets you into a gated one)"
    )
