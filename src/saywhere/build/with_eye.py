"""A model with an eye of our own: the memory and the writers of one model, an eye and more writers put into it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.seer_config import EYE, read_config, save_config
from saywhere.models.patchioner.tags import Tags

_OF_THE_OLD_EYES = ("alignment", "classes", "naming")


def build_with_eye(
    base: Path, eye: Path, writers: Mapping[str, Path], out: Path, changes: Mapping[str, Any] | None = None
) -> None:
    """base: the folder of a model. eye: of a trained eye. writers: name → folder of a decoder, which come before those
    of the base; the first is the default. changes: to seer.json. New weights are stored in a byte a number."""
    if out.exists() and any(out.iterdir()):
        raise InvalidFile(out, "is not empty", "give a new folder")
    config = read_config(base)
    learner = EyeLearner.from_pretrained(eye)
    opened = {name: PrefixDecoder.from_pretrained(folder) for name, folder in writers.items()}
    size = learner.eye.config.text_size
    for name, decoder in opened.items():
        if decoder.config.vector_size != size:
            reason = f"reads vectors of {decoder.config.vector_size} numbers, but those of the eye have {size}"
            raise InvalidValue(f"writer {name!r}", reason)
    shutil.copytree(base, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_OF_THE_OLD_EYES))
    learner.save_pretrained(out / EYE, int8=True)
    for name, decoder in opened.items():
        decoder.save_pretrained(out / name, int8=True)
    if config.detector:
        # What tags add to an alignment was learnt with it, and goes with it; their names stay.
        tags = Tags.from_pretrained(base / "tags")
        replace(tags, offset=np.zeros_like(tags.offset), weight=np.zeros_like(tags.weight)).save_pretrained(
            out / "tags"
        )
    kept = {name: folder for name, folder in config.writers.items() if name not in writers}
    own = {"encoder": EYE, "input_px": learner.eye.config.input_px, "class_names": False, "naming": ""}
    own |= {"writers": {name: name for name in writers} | kept}
    save_config(out, msgspec.to_builtins(config) | own | dict(changes or {}))
