"""The recipe of the part of `saywhere-base` that tells where a picture was taken, what happens in it, and why.

1. read     HL's rows (`hl_split`: the test rows are never learnt from), captions of COCO and their places
2. embed    the captions that stand for photos; photos' own vectors come from the base's work folder
3. draw     every text that will be learnt, with the vector it is learnt from (`levels_data`)
4. train    the base's decoder of text goes on, with a smaller vocabulary and the level's name as its prompt
Each stage leaves its files in the work folder and is not done again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.atomic import write_atomic
from saywhere.build.base import kept_vectors
from saywhere.build.base_photos import PhotoSet, coco_set, flickr_set
from saywhere.build.held_out import held_out
from saywhere.build.levels_data import (
    OBJECT,
    Drawn,
    Source,
    draw,
    hl_sayings,
    level_vocabulary,
    place_sayings,
    read_hl,
    references,
    row_vectors,
)
from saywhere.build.levels_places import place_words
from saywhere.build.levels_texts import LEVELS, well_formed
from saywhere.core import InvalidFile, InvalidValue
from saywhere.core.types import Floats32, Progress
from saywhere.formats.hl import HLRow
from saywhere.formats.record import InvalidRecord
from saywhere.language.embed import TextEncoder
from saywhere.language.vocabulary import FIRST_PIECE_ID, Vocabulary
from saywhere.learn import train_to_end
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.models.patchioner.data import Texts, save_texts
from saywhere.models.patchioner.decoder import DecoderConfig, PrefixDecoder
from saywhere.models.patchioner.gap_model import GapModel
from saywhere.models.search import GenerationConfig
from saywhere.store import is_finished

_CAPTIONS = 5
WRITING = GenerationConfig("beam", beams=3)
"""How level sentences are written: on the validation photos a little better than greedily (one seed)."""


@dataclass(frozen=True, slots=True)
class LevelSettings:
    """hl_share, text_share: of the texts drawn: HL's sentences, and places of captions whose photos are not here.
    coco_share, flickr_share: places of photos, learnt from the photos' own vectors. layers: so many of the base's
    decoder are kept, the first. steps, batch, rate …: of the training."""

    hl_share: float = 0.55
    text_share: float = 0.15
    coco_share: float = 0.2
    flickr_share: float = 0.1
    layers: int = 4
    steps: int = 300
    batch: int = 48
    rate: float = 3e-4
    weight_decay: float = 0.05
    max_words: int = 24
    min_count: int = 2
    dropout: float = 0.1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class LevelOutputs:
    """texts, wanted: by the row's number, what was written and what annotators wrote."""

    texts: dict[int, str]
    wanted: dict[int, list[str]]


@dataclass(frozen=True, slots=True)
class LevelsMade:
    """outputs: what is said of HL's test rows, by level. well_formed: the share of scene sentences that say a place;
    None without test rows. bad: records left out."""

    outputs: dict[str, LevelOutputs]
    well_formed: float | None
    bad: list[InvalidRecord]


def build_levels(
    hl_file: Path,
    data: Path,
    base: Path,
    base_work: Path,
    out: Path,
    work: Path,
    text_encoder: TextEncoder,
    settings: LevelSettings,
    progress: Progress,
) -> LevelsMade:
    """Make the folder `out`. data: as for `saywhere build base`. base: the folder of the model, whose decoder/ is gone
    on from. base_work: what building that left: its gap, and vectors of photos out of fold."""
    rows, bad = read_hl(hl_file)
    vectors = {which: _embedded(which, rows[which], work, text_encoder, progress) for which in rows if rows[which]}
    sources = [Source("hl", settings.hl_share, vectors["train"], hl_sayings(rows["train"]))]
    sources += _place_sources(data, base_work, work, text_encoder, settings, progress)
    network = train_levels(sources, base, GapModel.load(base_work / "gap"), work, settings, rows, vectors, text_encoder)
    network.save_pretrained(out, half=True)
    if not rows["test"]:
        return LevelsMade({}, None, bad)
    told = tell_rows(PrefixDecoder.from_pretrained(out), rows["test"], vectors["test"])
    formed = well_formed(list(told["scene"].texts.values())) if "scene" in told else None
    return LevelsMade(told, formed, bad)


def train_levels(
    sources: Sequence[Source],
    base: Path,
    gap: GapModel,
    work: Path,
    settings: LevelSettings,
    rows: dict[str, list[HLRow]],
    vectors: dict[str, Floats32],
    text_encoder: TextEncoder,
) -> PrefixDecoder:
    """Draw what is learnt into work/texts and train in work/run."""
    _check_settings(work, settings)
    about = {"encoder": dict(text_encoder.fingerprint)}
    if not is_finished(work / "texts"):
        words = level_vocabulary(sources, settings.min_count)
        drawn = draw(sources, settings.steps * settings.batch, words, gap, settings.max_words, settings.seed)
        checked = _validation(rows["validation"], vectors.get("validation"), words, settings) or drawn
        for folder, texts in (("validation", checked), ("texts", drawn)):
            save_texts(work / folder, texts.sentences, texts.vectors, words, about, prompts=texts.prompts)
    words = Texts(work / "texts").vocabulary
    begun = begin_from(PrefixDecoder.from_pretrained(base / "decoder"), words, settings)
    begun.save_pretrained(work / "start")
    return train_to_end(level_recipe(work, begun.config, settings), work / "run", PrefixDecoder, "last")


def begin_from(base: PrefixDecoder, words: Vocabulary, settings: LevelSettings) -> PrefixDecoder:
    """A decoder with these words and room for a prompt of one, with all that the base's decoder knows of them."""
    shape = {**base.config.to_dict(), "words": len(words), "prompt_words": 1}
    shape |= {
        "layers": min(settings.layers, base.config.layers),
        "max_words": settings.max_words,
        "dropout": settings.dropout,
    }
    network = PrefixDecoder.fresh(DecoderConfig.from_dict(shape), words, settings.seed)
    known = base.state_dict()
    rows = {piece: FIRST_PIECE_ID + row for row, piece in enumerate(base.vocabulary.pieces)}
    weights = dict(network.state_dict())
    weights |= {name: known[name] for name in weights if name not in ("words.weight", "positions.weight")}
    table = weights["words.weight"].clone()
    table[:FIRST_PIECE_ID] = known["words.weight"][:FIRST_PIECE_ID]
    for row, piece in enumerate(words.pieces, FIRST_PIECE_ID):
        if piece in rows:
            table[row] = known["words.weight"][rows[piece]]
    # The prompt comes between the vector and the begin of the text: what followed the vector moves on by one.
    places, after = weights["positions.weight"].clone(), base.config.before_words
    moved = min(len(places) - after - 1, len(known["positions.weight"]) - after)
    places[: after + 1] = known["positions.weight"][: after + 1]
    places[after + 1 : after + 1 + moved] = known["positions.weight"][after : after + moved]
    network.load_state_dict({**weights, "words.weight": table, "positions.weight": places})
    return network


def tell_rows(network: PrefixDecoder, rows: Sequence[HLRow], vectors: Floats32) -> dict[str, LevelOutputs]:
    """What is said of rows at each level that they have, from the (rows, k, d) vectors of their true captions: what
    could be said of photos that were seen perfectly."""
    told = {}
    for level in LEVELS:
        if wanted := references(rows, level):
            written = network.write(row_vectors(vectors[list(wanted)]), WRITING, [level] * len(wanted))
            said = dict(zip(wanted, (text.text for text in written), strict=True))
            told[level] = LevelOutputs(said, wanted)
    return told


def level_recipe(work: Path, shape: DecoderConfig, settings: LevelSettings) -> Recipe:
    """The recipe that a person could run with `saywhere train` to get the same weights."""
    model = {name: getattr(shape, name) for name in ("width", "layers", "heads", "feed_forward", "prefix", "dropout")}
    model |= {"max_words": shape.max_words, "prompt_words": shape.prompt_words, "prompt_rate": 1.0, "noise": [0.0, 0.0]}
    table: dict[str, Any] = {
        "name": "levels of saywhere-base",
        "task": "patchioner-decoder",
        "seed": settings.seed,
        "model": model,
        "data": {"folder": str(work / "texts"), "validation": str(work / "validation")},
        "train": {
            "steps": settings.steps,
            "batch_size": settings.batch,
            "lr": settings.rate,
            "betas": [0.9, 0.98],
            "weight_decay": settings.weight_decay,
            "clip_norm": 1.0,
            "init_from": str(work / "start" / "model.safetensors"),
        },
        "schedule": {"kind": "cosine", "warmup_steps": max(1, settings.steps // 10)},
        "validate": {"every_steps": max(100, settings.steps // 3)},
        "checkpoint": {"every_steps": max(50, settings.steps // 6)},
    }
    return parse_recipe(table, "levels of saywhere-base")


def _check_settings(work: Path, settings: LevelSettings) -> None:
    """Refuse to go on in a folder that was begun with other settings."""
    stored, wanted = work / "settings.json", asdict(settings)
    if stored.exists() and json.loads(stored.read_bytes()) != wanted:
        raise InvalidValue("settings", f"differ from those that {work} was begun with", "use another work folder")
    work.mkdir(parents=True, exist_ok=True)
    with write_atomic(stored) as file:
        file.write(json.dumps(wanted).encode())


def _place_sources(
    data: Path, base_work: Path, work: Path, text_encoder: TextEncoder, settings: LevelSettings, progress: Progress
) -> list[Source]:
    """Captions of COCO's photos that are not here, and photos that are, with the places their captions agree on."""
    left_out = held_out("test") | held_out("validation")
    coco = data / "coco_val"
    own, others = coco_set(coco / "photos", coco / "captions_val2017.json", left_out, weight=1.0)
    flickr = flickr_set(data / "flickr8k" / "photos", data / "flickr8k" / "captions.token.txt")
    told = [texts[:_CAPTIONS] for texts in others if len(texts) >= _CAPTIONS]
    said = [own.captions[path.stem][:_CAPTIONS] for path in own.photos]
    flickr_said = [flickr.captions[path.stem][:_CAPTIONS] for path in flickr.photos]
    places = _places([*told, *said, *flickr_said], work, progress)
    first, second = len(told), len(told) + len(said)
    vectors = _vectors("other-captions", told, work, text_encoder, progress)
    photos = photo_vectors(base_work, [own, flickr])
    return [
        Source("captions", settings.text_share, vectors, place_sayings(places[:first])),
        Source("coco", settings.coco_share, photos[: len(said)], place_sayings(places[first:second])),
        Source("flickr8k", settings.flickr_share, photos[len(said) :], place_sayings(places[second:])),
    ]


def photo_vectors(base_work: Path, sets: Sequence[PhotoSet]) -> Floats32:
    """(n, d) the vectors that building the base gave its photos, each by an alignment that had not seen it."""
    count = sum(len(one.photos) for one in sets)
    stored = Texts(base_work / "pairs")
    if len(stored) < count * _CAPTIONS:
        raise InvalidFile(stored.folder, f"has {len(stored)} texts, fewer than those of {count} photos")
    return np.stack([stored[number * _CAPTIONS].vector for number in range(count)])


def _places(groups: Sequence[Sequence[str]], work: Path, progress: Progress) -> list[list[list[str]]]:
    """The place words of each caption of each group, kept in work/places.json."""
    stored = work / "places.json"
    if stored.exists():
        kept: list[list[list[str]]] = json.loads(stored.read_bytes())
        if [len(one) for one in kept] == [len(one) for one in groups]:
            return kept
    found = []
    for number, group in enumerate(groups, 1):
        found.append(place_words(group))
        progress("finding places", number, len(groups))
    work.mkdir(parents=True, exist_ok=True)
    with write_atomic(stored) as file:
        file.write(json.dumps(found).encode())
    return found


def _validation(
    rows: Sequence[HLRow], vectors: Floats32 | None, words: Vocabulary, settings: LevelSettings
) -> Drawn | None:
    """Every sentence of the validation rows that can be said with the vocabulary."""
    if vectors is None:
        return None
    seen, unknown = row_vectors(vectors), words.unknown_id
    said = [
        one
        for one in hl_sayings(rows)
        if unknown not in (ids := words.encode(one.text.split()).ids) and len(ids) <= settings.max_words
    ]
    if not said:
        return None
    return Drawn(seen[[one.group for one in said]], [one.text for one in said], [one.level for one in said])


def _embedded(which: str, rows: Sequence[HLRow], work: Path, text_encoder: TextEncoder, progress: Progress) -> Floats32:
    """(rows, k, d) the vectors of the object captions."""
    fewest = min(len(row.captions[OBJECT]) for row in rows)
    return _vectors(f"hl-{which}", [row.captions[OBJECT][:fewest] for row in rows], work, text_encoder, progress)


def _vectors(
    what: str, groups: Sequence[Sequence[str]], work: Path, text_encoder: TextEncoder, progress: Progress
) -> Floats32:
    """(g, k, d) vectors of length 1 of g groups of k texts, kept in the work folder."""
    flat = kept_vectors(what, [text for group in groups for text in group], work, text_encoder, progress)
    return flat.reshape(len(groups), len(groups[0]), -1)
