"""A speech recogniser for recordings, loaded when it is first used."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from saywhere.assets import AssetUnavailable, folder_of, is_cached
from saywhere.core.errors import InvalidValue
from saywhere.core.types import Progress
from saywhere.language.sound import Sound
from saywhere.language.transcript import ALIGNED_LANGUAGES, Recogniser, Transcript
from saywhere.language.whisper import WHISPER, Whisper

_PACKAGES = ("onnxruntime", "tokenizers")


class Transcriber:
    """recogniser: one that is there already; else the best Whisper among the fetched assets. Nothing is fetched here.

    One thread may transcribe at a time.
    """

    def __init__(self, recogniser: Recogniser | None = None) -> None:
        self._recogniser = recogniser

    def facts(self) -> dict[str, Any]:
        """Whether it can, and if not, why and how to get it; its name and languages, and those that can be aligned."""
        name = self._recogniser.name if self._recogniser else next((one for one in WHISPER if is_cached(one)), "")
        why, how = "", ""
        if not self._recogniser and any(find_spec(package) is None for package in _PACKAGES):
            why, how = "To write down what is said, packages are missing.", "pip install 'saywhere[transcribe]'"
        elif not name:
            why = "To write down what is said, a speech recogniser is needed."
            how = f"saywhere assets fetch {WHISPER[0]}"
        languages = [] if why else self._languages(name)
        aligned = list(ALIGNED_LANGUAGES)
        return {"has": not why, "why": why, "how": how, "name": name, "languages": languages, "aligned": aligned}

    def check(self, language: str | None) -> None:
        """AssetUnavailable if nothing can transcribe, InvalidValue if it does not know this language."""
        facts = self.facts()
        if not facts["has"]:
            raise AssetUnavailable(WHISPER[0], "is not ready", facts["how"])
        if language is not None and language not in facts["languages"]:
            raise InvalidValue(
                "the language", f"is not one that {facts['name']} knows", "use a code such as en, de or zh"
            )

    def transcribe(self, sound: Sound, language: str | None, progress: Progress) -> Transcript:
        """What is said. What `progress` raises stops it."""
        if self._recogniser is None:
            progress("loading", 0, 0)
            self._recogniser = Whisper(self.facts()["name"])
        return self._recogniser.transcribe(sound, language, progress)

    def _languages(self, name: str) -> list[str]:
        if self._recogniser:
            return list(self._recogniser.languages)
        return list(_languages_of(folder_of(name)))


@cache
def _languages_of(folder: Path) -> tuple[str, ...]:
    config = json.loads((folder / "generation_config.json").read_text("utf-8"))
    return tuple(sorted(code[2:-2] for code in config["lang_to_id"]))
