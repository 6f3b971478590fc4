"""Oscars in folders, or on the hub: `saywhere.models.folder` with the vocabulary or tokenizer beside the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.models.folder import built, load_part, save_part
from saywhere.models.oscar.config import OscarConfig, checked_levels
from saywhere.models.oscar.network import Oscar
from saywhere.models.oscar.words import words_from
from saywhere.models.region_source import read_source, save_source

KIND = "oscar"


def save_oscar(model: Oscar, folder: str | Path, *, half: bool = False) -> None:
    """Write the model's files; each appears whole or not at all."""
    save_source(folder, model.regions_from)
    save_part(folder, KIND, model.config.to_dict(), model.state_dict(), model.coding.files(), half=half)


def load_oscar(source: str | Path, revision: str | None = None) -> Oscar:
    """A network in eval mode, from a folder or the hub."""
    part = load_part(source, KIND, revision)
    try:
        # Those saved before there was a choice normalise regions.
        config = OscarConfig.from_dict({"norm_regions": True, **part.config})
        words = words_from(part.files)
        model = built(lambda: Oscar(config, words), part)
    except (InvalidValue, UnknownName, UnicodeDecodeError) as error:
        raise InvalidFile(part.folder, f"is not an Oscar: {error}") from error
    model.regions_from = read_source(part.folder)
    return model.eval()


def with_levels(
    model: Oscar, levels: Sequence[str], dropout: float | None = None, attention_dropout: float | None = None
) -> Oscar:
    """The same network for other levels, to be tuned further: at first it says at each what it would have said before.

    A network of one level may be made into one of another level, or of several. One of several may gain levels, and
    loses none: its vectors would be lost. dropout, attention_dropout: those of the model if not given.
    """
    wanted, old = checked_levels(levels), model.config
    lost = [level for level in old.levels if level not in wanted]
    if lost and (len(old.levels) > 1 or len(wanted) > 1):
        raise InvalidValue("levels", f"{', '.join(wanted)} leave out {', '.join(lost)}, which the network knows")
    config = replace(
        old,
        levels=wanted,
        dropout=old.dropout if dropout is None else dropout,
        attention_dropout=old.attention_dropout if attention_dropout is None else attention_dropout,
    )
    with torch.random.fork_rng(devices=[]):
        made = Oscar(config, model.coding)
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name != "levels.weight"}
    if made.levels is not None:
        vectors = torch.zeros_like(made.levels.weight)
        if model.levels is not None:
            for number, level in enumerate(old.levels):
                vectors[wanted.index(level)] = model.levels.weight[number].detach()
        tensors["levels.weight"] = vectors
    made.load_state_dict(tensors)
    made.regions_from = model.regions_from
    return made.train(model.training)
