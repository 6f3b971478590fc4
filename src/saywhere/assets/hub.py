"""Files out of a repository of the Hugging Face hub, each of one fixed commit."""

from __future__ import annotations

from pathlib import Path

from saywhere.assets.errors import AssetUnavailable
from saywhere.assets.registry import AssetFile, Hub
from saywhere.assets.wheel import checked
from saywhere.core.errors import InvalidFile, require


def read_hub_file(name: str, hub: Hub, file: AssetFile, folder: Path) -> bytes:
    """The bytes of one file of the asset of this name, fetched by way of `folder` and checked against the registry."""
    library = require("huggingface_hub", needed_for=f"fetching the asset {name!r}", extra="models")
    errors = require("huggingface_hub.errors", needed_for=f"fetching the asset {name!r}", extra="models")
    try:
        path = Path(library.hf_hub_download(hub.repo, file.member, revision=hub.revision, local_dir=folder))
    except (OSError, errors.HTTPError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise AssetUnavailable(name, f"could not be fetched from the hub: {reason}", _how_to_get(name, hub)) from error
    size = path.stat().st_size
    if size != file.size:
        raise InvalidFile(f"{hub.repo}@{hub.revision[:12]}", f"{file.member} has {size:,} bytes, not {file.size:,}")
    return checked(path.read_bytes(), file, f"{hub.repo}@{hub.revision[:12]}", "the hub")


def _how_to_get(name: str, hub: Hub) -> str:
    return (
        f"connect to the network once and run `saywhere assets fetch {name}` (it comes from huggingface.co/{hub.repo}; "
        "HF_ENDPOINT names a mirror, HF_TOKEN lets you into a gated one)"
    )
