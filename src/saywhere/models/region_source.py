"""Where the regions that a network learnt from came from, kept beside its weights, so that photos can be read so again.

regions.json    {"encoder": {…}}   an encoder's patches, as `saywhere look` keeps them: the encoder's fingerprint
                {"model": NAME, "region_set": …}   the regions that a model's looks give for other networks; without a
                                   set, as it was once, the places that the model's own answers are made from
                {"file": NAME}     a file of features that others made: no photo can be read so
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from saywhere import limits
from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile
from saywhere.models.folder import SOURCE

REGION_SET = "whole, things and windows"
"""What a seer's `Look.region_set` holds. Whoever changes that changes this name, so that files are not mixed."""
_ENCODER = re.compile(r"(\d+_)?encoder")


class RegionSource(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One of encoder, model and file is given. region_set: of a model, "" or REGION_SET."""

    encoder: dict[str, str | int] = {}
    model: str = ""
    file: str = ""
    region_set: str = ""

    def __post_init__(self) -> None:
        if self.region_set not in ("", REGION_SET):
            raise ValueError(f"no model gives regions that are {self.region_set!r}")

    @property
    def encoder_names(self) -> list[str]:
        """The names of the encoders; several that are joined have theirs under 0_encoder, 1_encoder …"""
        return [str(name) for key, name in sorted(self.encoder.items()) if _ENCODER.fullmatch(key)]

    @property
    def has_detector(self) -> bool:
        return "found_by_detector" in self.encoder


def save_source(folder: str | Path, source: RegionSource | None) -> None:
    """Write regions.json; what is not known is not written."""
    if source is None:
        (Path(folder) / SOURCE).unlink(missing_ok=True)
        return
    with write_atomic(Path(folder) / SOURCE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(source), indent=2))


def read_source(folder: str | Path) -> RegionSource | None:
    """What a folder says of the regions its network learnt from; None if it does not."""
    path = Path(folder) / SOURCE
    if not path.is_file():
        return None
    content = limits.read_whole(path)
    try:
        return msgspec.json.decode(content, type=RegionSource)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(path, f"does not say where regions come from: {error}") from error
