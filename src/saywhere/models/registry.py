"""Which kinds of models there are. A kind's module is imported when a folder of that kind is opened.

seer.json     a seer: encoder, alignment, memory and writers, each in a folder of its own
config.json   one network; "model" names its kind, as `saywhere export` writes it
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from saywhere import limits
from saywhere.assets.checkpoint import read_json
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.models.face import Model

BASE, TRACE = "saywhere-base", "saywhere-trace"
SEER, CONFIG = "seer.json", "config.json"
_SHIPPED = {BASE: ("base", SEER, "seer"), TRACE: ("trace", CONFIG, "tracevlm-small")}
"""Models that come with the package: their folder, the file that names their parts, and their kind."""


@dataclass(frozen=True, slots=True)
class ModelKind:
    """opener: "package.module:function", (folder, part) → Model. skills: that models of the kind may have."""

    opener: str
    skills: tuple[str, ...]


_KINDS = {
    "seer": ModelKind(
        "saywhere.models.patchioner.seer:open_seer",
        ("caption", "ground", "narrate", "answer", "segment", "scene", "why", "chat"),
    ),
    "mitr": ModelKind("saywhere.models.mitr.face:open_mitr", ("caption", "ground", "narrate")),
    "oscar": ModelKind("saywhere.models.oscar.face:open_oscar", ("caption", "scene")),
    "patchioner-decoder": ModelKind(
        "saywhere.models.patchioner.seer:open_with_writer", ("caption", "ground", "narrate", "why")
    ),
    "tracevlm": ModelKind(
        "saywhere.models.tracevlm.face:open_tracevlm", ("caption", "ground", "narrate", "answer", "segment", "chat")
    ),
    "tracevlm-small": ModelKind(
        "saywhere.models.tracevlm.small_face:open_small", ("caption", "ground", "narrate", "answer", "segment", "chat")
    ),
    "updown-caption": ModelKind("saywhere.models.updown.face:open_captioner", ("caption",)),
    "updown-vqa": ModelKind("saywhere.models.updown.face:open_vqa", ("answer",)),
}
# A network that answers questions about regions, as a part of another model.
_ANSWERERS = {
    "answerer": "saywhere.models.answerer.answering:open_answerer",
    "updown-vqa": "saywhere.models.updown.answering:open_answerer",
}


def register(kind: str, opener: str, skills: tuple[str, ...]) -> None:
    """Make a kind of models known. opener: see `ModelKind`."""
    module, colon, attribute = opener.partition(":")
    if not (kind and module and colon and attribute.isidentifier()):
        raise InvalidValue(f"the kind {kind!r}", f"{opener!r} is not of the form 'package.module:function'")
    if kind in _KINDS and _KINDS[kind].opener != opener:
        raise InvalidValue(f"the kind {kind!r}", f"is already registered as {_KINDS[kind].opener}, not {opener}")
    _KINDS[kind] = ModelKind(opener, skills)


def known_kinds() -> tuple[str, ...]:
    """The kinds that can be opened, in order."""
    return tuple(sorted(_KINDS))


def with_skill(skill: str) -> tuple[str, ...]:
    """What to use for a skill: the models that come with the package, and kinds of models."""
    kinds = [f"a model of the kind {kind}" for kind, one in sorted(_KINDS.items()) if skill in one.skills]
    shipped = [name for name, (_, _, kind) in _SHIPPED.items() if skill in _KINDS[kind].skills]
    return (*shipped, *kinds)


def kind_of(folder: Path) -> str:
    """The kind of model that a folder holds. Nothing is imported for it."""
    if (folder / SEER).is_file():
        return "seer"
    if (folder / "checkpoints").is_dir():
        raise InvalidFile(folder, "is a run, not yet a model", f"saywhere export {folder} --out FOLDER makes one of it")
    kind = _described(folder)
    if kind not in _KINDS:
        part = "patchioner" in kind or kind in _ANSWERERS
        hint = "a part of a seer is used through the folder that has seer.json" if part else ""
        raise InvalidFile(folder, f"holds a {kind}, which does not look at photos by itself", hint)
    return kind


def _described(folder: Path) -> str:
    """The kind of network that a folder's config.json names."""
    if not (folder / CONFIG).is_file():
        raise InvalidFile(folder, f"is not a model: there is neither {SEER} nor {CONFIG} in it")
    kind = read_json(folder / CONFIG).get("model")
    if not isinstance(kind, str):
        raise InvalidFile(folder / CONFIG, "does not say which kind of model it describes")
    return kind


def embedded(name: str = BASE) -> Path:
    """The folder of a model that comes with the package."""
    place, described, _ = _SHIPPED[name]
    folder = Path(str(files("saywhere.models") / place))
    if not (folder / described).is_file():
        raise InvalidFile(
            folder,
            f"the weights of {name} did not come with this copy of saywhere",
            "install a release, or name another model: a folder or owner/name on the hub",
        )
    return folder


def embedded_name(folder: Path) -> str:
    """What a model is called that comes with the package; empty for any other folder."""
    places = {Path(str(files("saywhere.models") / place)).resolve(): name for name, (place, _, _) in _SHIPPED.items()}
    return places.get(folder.resolve(), "")


def seer_of(name: str, folder: str | Path) -> Path:
    """The seer that the model in a folder names: the one that comes with the package, or one inside that folder."""
    if name == BASE:
        return embedded()
    try:
        found = limits.inside(folder, name)
    except InvalidFile as error:
        hint = "copy the seer that its regions come from into this folder, and name it so in regions.json"
        raise InvalidFile(error.path, error.reason, hint) from error
    # A model that reads what another one sees could go on so for ever.
    if not (found / SEER).is_file():
        raise InvalidFile(found, f"is not a seer: there is no {SEER} in it")
    return found


def open_model(folder: Path, part: str = "") -> Model:
    """The model in a folder. part: which of several, for kinds that have some, such as a seer's writers."""
    model: Model = _found(_KINDS[kind_of(folder)].opener)(folder, part)
    return model


def open_answerer(folder: Path) -> Any:
    """The network of a folder that answers questions about regions; see `RegionAnswerer` of the patch captioner."""
    kind = _described(folder)
    if kind not in _ANSWERERS:
        raise UnknownName("kind of answering network", kind, _ANSWERERS)
    return _found(_ANSWERERS[kind])(folder)


def _found(where: str) -> Any:
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)
