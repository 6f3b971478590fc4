"""What networks with a vocabulary share: fresh weights from a seed, what the ids mean, and the way into folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import nn

from saywhere.assets.checkpoint import CONFIG
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.common.config import ShapeConfig
from saywhere.models.common.modes import seeded
from saywhere.models.folder import built, load_part, save_part
from saywhere.models.region_source import RegionSource, read_source, save_source

VOCABULARY = "vocabulary.json"


class VocabularyNetwork(nn.Module):
    """A network that is made of a config alone. vocabulary: what the word ids mean, if known; `attach` sets it.
    regions_from: how photos become the regions that it learnt from, as far as it is known.

    kind: as config.json names it. config_type: of its config. must_know_words: it is not saved without a vocabulary.
    """

    kind: ClassVar[str]
    config_type: ClassVar[type[ShapeConfig]]
    must_know_words: ClassVar[bool] = True
    config: Any
    vocabulary: Vocabulary | None = None
    regions_from: RegionSource | None = None

    @classmethod
    def fresh(cls, config: Any, seed: int) -> Self:
        """A network with random weights that depend on the seed alone."""
        with seeded(seed):
            return cls(config)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def attach(self, vocabulary: Vocabulary) -> Self:
        """Say what the word ids mean. A vocabulary of another size is refused."""
        check_size("vocabulary", len(vocabulary), self.config.words)
        self.vocabulary = vocabulary
        return self

    def save_pretrained(self, folder: str | Path) -> None:
        """Weights, config and vocabularies into a folder; see `saywhere.models.folder`."""
        files = self.vocabulary_files()
        save_source(folder, self.regions_from)
        save_part(folder, self.kind, self.config.to_dict(), self.state_dict(), files)
        if VOCABULARY not in files:
            (Path(folder) / VOCABULARY).unlink(missing_ok=True)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> Self:
        """A network in eval mode, from a folder or, as "owner/name", from the hub."""
        part = load_part(source, cls.kind, revision)
        try:
            config = cls.config_type.from_dict(part.config)
            model = built(lambda: cls(config), part)
            model.attach_files({name: content.decode() for name, content in part.files.items()})
        except (InvalidValue, UnknownName, UnicodeDecodeError) as error:
            raise InvalidFile(part.folder / CONFIG, str(error)) from error
        model.regions_from = read_source(part.folder)
        return model.eval()

    def vocabulary_files(self) -> dict[str, bytes]:
        """What stands beside the weights."""
        if self.vocabulary is None and self.must_know_words:
            raise InvalidValue("model", "does not know what its ids mean", "attach its vocabulary before saving")
        return {} if self.vocabulary is None else {VOCABULARY: self.vocabulary.to_json().encode()}

    def attach_files(self, files: Mapping[str, str]) -> None:
        """What stood beside the weights."""
        if self.must_know_words or VOCABULARY in files:
            self.attach(Vocabulary.from_json(listed_file(files, VOCABULARY)))


def check_size(what: str, found: int, wanted: int) -> None:
    """Refuse a vocabulary of another size than the model's."""
    if found != wanted:
        reason = f"has {found:,} entries, but the model was made for {wanted:,}"
        raise InvalidValue(what, reason, "use the one saved beside the weights")


def listed_file(files: Mapping[str, str], name: str) -> str:
    """A file that must stand beside the weights."""
    if name not in files:
        raise InvalidValue("files", f"do not list {name}")
    return files[name]
