"""MITRs in folders, or on the hub: `saywhere.models.folder` with the vocabulary, if any, beside the weights."""

from __future__ import annotations

from pathlib import Path

from saywhere.assets.checkpoint import CONFIG
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.folder import fit, load_part, save_part
from saywhere.models.mitr.config import MitrConfig
from saywhere.models.mitr.network import MITR

VOCABULARY = "vocabulary.json"
_KIND = "mitr"


def save(model: MITR, folder: str | Path) -> None:
    """Write the model's files; each appears whole or not at all."""
    files = {} if model.vocabulary is None else {VOCABULARY: model.vocabulary.to_json().encode()}
    save_part(folder, _KIND, model.config.to_dict(), model.state_dict(), files)
    if not files:
        (Path(folder) / VOCABULARY).unlink(missing_ok=True)


def load(source: str | Path, revision: str | None = None) -> MITR:
    """A model from a folder, or from the hub if there is no such folder and the source is "owner/name"."""
    part = load_part(source, _KIND, revision)
    try:
        model = MITR(MitrConfig.from_dict(part.config))
        if VOCABULARY in part.files:
            model.attach(Vocabulary.from_json(part.files[VOCABULARY].decode()))
    except (InvalidValue, UnknownName, UnicodeDecodeError) as error:
        raise InvalidFile(part.folder / CONFIG, str(error)) from error
    fit(model, part)
    return model.eval()
