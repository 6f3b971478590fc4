"""seer.json: what a seer's folder says of it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from saywhere import limits
from saywhere.atomic import write_atomic
from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.models.patchioner.aggregation import Aggregation
from saywhere.models.patchioner.eyes import Blend
from saywhere.models.patchioner.writers import check_names

CONFIG, MEMORY = "seer.json", "memory.safetensors"
GAPS = ("memory", "direct", "bridge")
ALIGNMENTS = ("linear", "talk2dino", "shared")
EYE = "eye"
"""An encoder of our own, in the folder of this name; see `saywhere.models.eye`."""


class SeerConfig(msgspec.Struct, forbid_unknown_fields=True):
    """seer.json. encoder, input_px: what looks; "eye" for the one in the folder, whose size is its own. gap: "memory"
    "direct" or "bridge", whose weights are in the folder of that name; scene_gap: the same of whole photos and of sets
    of boxes, if that is otherwise. writers: folders by name, each of a decoder of ours or of the published form; the
    first is the default. class_names: whether the encoder's classifier helps. blend: see that class. alignment:
    "linear" or "talk2dino", in the folder "alignment", or "shared", if the encoder's patches and the text encoder's
    vectors are of one space. text_encoder: as for `open_text_encoder`, a file that it names being looked for in the
    folder first; "" for the package's own. weighting: as of `Aggregation`, kind → way.
    beams, no_repeat: see `GenerationConfig`. draws: for whole photos, see `ConsensusConfig`; 0: as regions.
    draw_temperature, among: of that, see there.
    answers: the folder of the network that answers questions, if there is one. question_kinds: see `Seer`.
    levels: of captions above objects, such as "scene"; level_writer: the folder of what writes them; both or none.
    level_gap: "memory" or "direct"; level_beams: of their search, 1 for greedy; level_draws: to write them by
    consensus, see `ConsensusConfig`; 0 not to.
    referring: the folder of the network that finds referring expressions, if there is one; see `Referrer`.
    naming: that of the network that says what boxes show, for an eye of ours with a detector; see `BoxNaming`.
    matching: that of the network that tells photos apart for an eye of ours, if there is one; see `Matcher`. auxiliary:
    whether photos are looked at a second time, which that network may read; see `saywhere.vision.auxiliary`."""

    name: str
    encoder: str
    input_px: int
    detector: bool
    class_names: bool
    gap: str
    temperature: float
    writers: dict[str, str]
    blend: dict[str, float]
    least_similarity: float
    least_grounding: float
    least_missed: float = 0.0
    least_presence: float = 0.0
    beams: int = 1
    no_repeat: int = 0
    scene_gap: str = ""
    draws: int = 0
    draw_temperature: float = 0.5
    among: float = 0.3
    answers: str = ""
    question_kinds: list[str] = []
    levels: list[str] = []
    level_writer: str = ""
    level_gap: str = "direct"
    level_beams: int = 5
    level_draws: int = 0
    referring: str = ""
    naming: str = ""
    matching: str = ""
    auxiliary: bool = False
    alignment: str = "linear"
    text_encoder: str = ""
    weighting: dict[str, str] = {}


def save_config(folder: str | Path, config: dict[str, Any]) -> None:
    """Write seer.json after checking it."""
    checked = msgspec.convert(config, SeerConfig)
    _check(checked)
    with write_atomic(Path(folder) / CONFIG) as file:
        file.write(msgspec.json.format(msgspec.json.encode(checked), indent=2))


def read_config(folder: str | Path) -> SeerConfig:
    """What a seer's folder says of it, checked."""
    path = Path(folder) / CONFIG
    content = limits.read_whole(path)
    try:
        config = msgspec.json.decode(content, type=SeerConfig)
        _check(config)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidValue, UnknownName) as error:
        raise InvalidFile(path, f"does not describe a seer: {error}") from error
    for part in (*config.writers.values(), config.answers, config.level_writer, *_networks(config)):
        if part:
            limits.inside(folder, part)
    counts = {"pixels of a side": config.input_px, "beams": max(config.beams, config.level_beams)}
    counts |= {"draws": max(config.draws, config.level_draws), "words": config.no_repeat}
    counts |= {"writers": len(config.writers), "levels": len(config.levels)}
    for what, amount in counts.items():
        limits.check(what, amount, path)
    return config


def _check(config: SeerConfig) -> None:
    if not config.writers:
        raise InvalidValue("writers", "there are none")
    for gap in (config.gap, config.scene_gap or config.gap):
        if gap not in GAPS:
            raise UnknownName("gap", gap, GAPS)
    if config.alignment not in ALIGNMENTS:
        raise UnknownName("alignment", config.alignment, ALIGNMENTS)
    if unknown := set(config.weighting) - {one.name for one in fields(Aggregation)}:
        raise UnknownName("weighting", min(unknown), [one.name for one in fields(Aggregation)])
    Aggregation(**config.weighting)  # type: ignore[arg-type]  # it checks them itself
    if config.input_px < 1 or min(config.beams, config.no_repeat + 1, config.draws + 1) < 1:
        raise InvalidValue("input_px, beams, no_repeat, draws", "are negative, or not at least 1 where they must be")
    if not 0 < config.draw_temperature < float("inf") or not 0 <= config.among <= 1:
        reason = f"are {config.draw_temperature}, {config.among}, not above 0 and within [0, 1]"
        raise InvalidValue("draw_temperature, among", reason)
    if not config.temperature > 0:
        raise InvalidValue("temperature", f"is {config.temperature}, not above 0")
    if config.matching and config.encoder != EYE:
        raise InvalidValue("matching", f"goes with the encoder {EYE!r}, not with {config.encoder!r}")
    if config.auxiliary and not ((config.matching or config.answers) and config.detector):
        raise InvalidValue("auxiliary", "goes with matching or answers, which read it, and with a detector")
    if config.naming and not (config.encoder == EYE and config.detector):
        raise InvalidValue("naming", f"goes with the encoder {EYE!r} and a detector")
    _check_levels(config)
    known = [one.name for one in fields(Blend)]
    for name in config.blend:
        if name not in known:
            raise UnknownName("blend", name, known)
    Blend(**config.blend)


def _networks(config: SeerConfig) -> tuple[str, ...]:
    """Folders of small networks beside the writers, as far as there are such."""
    return config.referring, config.naming, config.matching


def _check_levels(config: SeerConfig) -> None:
    check_names(config.levels)
    if bool(config.levels) != bool(config.level_writer):
        raise InvalidValue("levels, level_writer", "come together: what is told above objects, and what writes it")
    if config.level_gap not in GAPS:
        raise UnknownName("level_gap", config.level_gap, GAPS)
    if config.level_beams < 1 or config.level_draws < 0:
        reason = f"are {config.level_beams}, {config.level_draws}, not at least 1 and 0"
        raise InvalidValue("level_beams, level_draws", reason)
