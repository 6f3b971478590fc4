"""UpDn networks in folders, or on the hub: `saywhere.models.folder` with the vocabularies beside the weights."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from saywhere.assets.checkpoint import CONFIG
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.folder import SavedPart, fit, load_part, save_part
from saywhere.models.updown.answers import AnswerVocabulary
from saywhere.models.updown.captioner import UpDnCaptioner
from saywhere.models.updown.config import UpDnCaptionConfig, UpDnConfig
from saywhere.models.updown.vqa import UpDnVqa

VQA, CAPTIONER = "updown-vqa", "updown-caption"
VOCABULARY, ANSWERS = "vocabulary.json", "answers.json"

_Config = TypeVar("_Config", UpDnConfig, UpDnCaptionConfig)


def save_vqa(model: UpDnVqa, folder: str | Path) -> None:
    """Write the model's files; each appears whole or not at all. It must know what its ids mean."""
    if model.vocabulary is None or model.answers is None:
        raise InvalidValue("model", "does not know what its ids mean", "attach the vocabularies before saving")
    files = {VOCABULARY: model.vocabulary.to_json().encode(), ANSWERS: model.answers.to_json().encode()}
    save_part(folder, VQA, model.config.to_dict(), model.state_dict(), files)


def load_vqa(source: str | Path, revision: str | None = None) -> UpDnVqa:
    """A network in eval mode, from a folder or the hub."""
    part = load_part(source, VQA, revision)
    model = UpDnVqa(_config(part, UpDnConfig))
    fit(model, part)
    vocabulary = Vocabulary.from_json(_text(part, VOCABULARY))
    model.attach(vocabulary, AnswerVocabulary.from_json(_text(part, ANSWERS)))
    return model.eval()


def save_captioner(model: UpDnCaptioner, folder: str | Path) -> None:
    """As `save_vqa`."""
    if model.vocabulary is None:
        raise InvalidValue("model", "does not know what its ids mean", "attach the vocabulary before saving")
    files = {VOCABULARY: model.vocabulary.to_json().encode()}
    save_part(folder, CAPTIONER, model.config.to_dict(), model.state_dict(), files)


def load_captioner(source: str | Path, revision: str | None = None) -> UpDnCaptioner:
    """As `load_vqa`."""
    part = load_part(source, CAPTIONER, revision)
    model = UpDnCaptioner(_config(part, UpDnCaptionConfig))
    fit(model, part)
    return model.attach(Vocabulary.from_json(_text(part, VOCABULARY))).eval()


def _config(part: SavedPart, kind: type[_Config]) -> _Config:
    try:
        return kind.from_dict(part.config)
    except (InvalidValue, UnknownName) as error:
        raise InvalidFile(part.folder / CONFIG, str(error)) from error


def _text(part: SavedPart, name: str) -> str:
    if name not in part.files:
        raise InvalidFile(part.folder / CONFIG, f"does not list {name}")
    return part.files[name].decode()
