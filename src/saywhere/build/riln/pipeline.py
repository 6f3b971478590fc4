"""The builder: narratives in, shards of checked examples out, resumed where it was stopped.

OUT/examples-00000.jsonl …   the examples, in the order of the narratives; each file whole or not there
OUT/manifest.json            the shards with digest and statistics, written after each of them
OUT/answers.jsonl            what models answered (only with models); a question in it is never asked again

A shard's key says what it was made of: its narratives and photos, the settings, the generator with its models, prompts
and addresses, evaluation text, boxes and review.
A second run keeps every shard whose key and content are as the manifest has them, and makes the others anew; one in
which a model did not answer is made anew, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from saywhere.atomic import write_atomic
from saywhere.build.photo_boxes import PhotoBoxes, photo_name
from saywhere.build.riln.assembly import dialogue_example, question_example
from saywhere.build.riln.checks import box_fault, fault_of
from saywhere.build.riln.drafts import Generator, Ledger
from saywhere.build.riln.example import (
    FEWEST_DIALOGUES,
    NOT_REVIEWED,
    Checks,
    RilnExample,
    content_digest,
    encoded,
)
from saywhere.build.riln.grounding import ASSUMED_SIZE_PX, Groundwork, digest_of, ground
from saywhere.build.riln.overlap import MOST_OVERLAP, EvaluationText
from saywhere.build.riln.review import ReviewDecision, no_photo, reviewed
from saywhere.build.riln.selection import Selection
from saywhere.build.riln.statistics import RilnStatistics, total
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.narrative import Narrative
from saywhere.core.types import Progress
from saywhere.formats.record import InvalidRecord
from saywhere.language.phrases import PhraseSpan, phrase_spans
from saywhere.provenance import sha256_of
from saywhere.vision.photo import read_photo

FORMAT = "saywhere-riln-1"
MANIFEST, ANSWERS = "manifest.json", "answers.jsonl"
TOO_MUCH_OVERLAP = "overlap: too many 5-grams of evaluation text"
TOO_FEW_DIALOGUES = "dialogues: fewer than three passed, so the image has none"


@dataclass(frozen=True, slots=True)
class RilnSettings:
    """per_cell: questions of each level and kind. shard: narratives in a file. workers: narratives at a time."""

    seed: int = 0
    per_cell: int = 1
    shard: int = 64
    workers: int = 1
    most_overlap: float = MOST_OVERLAP

    def __post_init__(self) -> None:
        if self.seed < 0 or min(self.per_cell, self.shard, self.workers) < 1 or not 0 < self.most_overlap <= 1:
            raise InvalidValue("RILN settings", f"cannot be {self}")


@dataclass(frozen=True, slots=True)
class RilnMaterial:
    """What examples are checked against. boxes: by photo's name. review: by example's id. photo: where one is."""

    evaluation: EvaluationText = field(default_factory=EvaluationText)
    boxes: Mapping[str, PhotoBoxes] = field(default_factory=dict)
    review: Mapping[str, ReviewDecision] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection)
    photo: Callable[[str], Path | None] = no_photo


class ShardMade(msgspec.Struct):
    """One file of a data set. key: of all that it was made of."""

    file: str
    key: str
    sha256: str
    statistics: RilnStatistics


class RilnManifest(msgspec.Struct):
    """complete: False while narratives are still to come. decisions: of people, that were given to it."""

    format: str
    generator: str
    complete: bool
    settings: dict[str, int | float]
    statistics: RilnStatistics
    shards: list[ShardMade]
    decisions: int = 0

    @property
    def unfit(self) -> int:
        """Decisions that were not applied: no example of that name has the text that they are about."""
        return self.decisions - self.statistics.decided


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A narrative that is used. split: as `Checks` says. speaks: whether its image still needs dialogues."""

    narrative: Narrative
    split: str
    speaks: bool


def build_riln(
    source: Iterable[Narrative | InvalidRecord],
    folder: str | Path,
    generator: Generator,
    settings: RilnSettings | None = None,
    material: RilnMaterial | None = None,
    progress: Progress | None = None,
    expected: int = 0,
) -> RilnManifest:
    """Make the data set, or go on with it. expected: how many records will come, to show how far it is."""
    folder, settings, material = Path(folder), settings or RilnSettings(), material or RilnMaterial()
    before = {shard.file: shard for shard in _manifest_of(folder)}
    for torn in folder.glob(".*.part"):  # what a killed run was writing
        torn.unlink()
    made: list[ShardMade] = []
    read = 0
    for number, (records, wanted, statistics) in enumerate(_chunks(source, material.selection, settings.shard)):
        name, key = f"examples-{number:05d}.jsonl", _key(wanted, statistics, generator, settings, material)
        known = before.get(name)
        if known is None or known.key != key or known.statistics.unanswered or not _intact(folder / name, known):
            known = _make(folder, name, key, wanted, statistics, generator, settings, material)
        made.append(known)
        _write_manifest(folder, _manifest(generator, settings, made, len(material.review), complete=False))
        read += records
        if progress is not None:
            progress("narratives", read, max(read, expected))
    for file in before.keys() - {shard.file for shard in made}:
        (folder / file).unlink(missing_ok=True)
    manifest = _manifest(generator, settings, made, len(material.review), complete=True)
    _write_manifest(folder, manifest)
    return manifest


def read_manifest(folder: str | Path) -> RilnManifest | None:
    """What stands in a folder; None if nothing does."""
    path = Path(folder) / MANIFEST
    if not path.exists():
        return None
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=RilnManifest)
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidFile(path, f"is not the manifest of a RILN data set: {error}", "name another folder") from error
    if manifest.format != FORMAT:
        raise InvalidFile(path, f"has format {manifest.format!r}, not {FORMAT!r}", "name another folder")
    return manifest


def _manifest_of(folder: Path) -> list[ShardMade]:
    known = read_manifest(folder)
    return known.shards if known else []


def _intact(path: Path, shard: ShardMade) -> bool:
    return path.is_file() and sha256_of(path) == shard.sha256


def _manifest(
    generator: Generator, settings: RilnSettings, made: Sequence[ShardMade], decisions: int, complete: bool
) -> RilnManifest:
    kept: dict[str, int | float] = {
        "seed": settings.seed,
        "per_cell": settings.per_cell,
        "shard": settings.shard,
        "most_overlap": settings.most_overlap,
    }
    statistics = total(shard.statistics for shard in made)
    return RilnManifest(FORMAT, generator.name, complete, kept, statistics, list(made), decisions)


def _write_manifest(folder: Path, manifest: RilnManifest) -> None:
    with write_atomic(folder / MANIFEST) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")


def _chunks(
    source: Iterable[Narrative | InvalidRecord], selection: Selection, size: int
) -> Iterator[tuple[int, list[_Wanted], RilnStatistics]]:
    """How many records, those narratives of them that are used, and statistics with what is wrong with the others."""
    seen: set[str] = set()
    spoken: set[str] = set()
    records = iter(source)
    while chunk := list(islice(records, size)):
        ledger, wanted = Ledger(), []
        for record in chunk:
            reason = selection.fault(record)
            if not reason and isinstance(record, Narrative):
                digest, image = digest_of(record), f"{record.dataset_id}/{record.image_id}"
                reason = "it is there twice" if digest in seen else ""
                if not reason:
                    wanted.append(_Wanted(record, selection.split_of(record), image not in spoken))
                seen.add(digest)
                spoken.add(image)
            if reason:
                ledger.reject(f"narrative: {reason}")
        statistics = RilnStatistics(records=len(chunk))
        statistics.count_ledger(ledger)
        yield len(chunk), wanted, statistics


def _key(
    wanted: Sequence[_Wanted],
    statistics: RilnStatistics,
    generator: Generator,
    settings: RilnSettings,
    material: RilnMaterial,
) -> str:
    """Differs where anything does that the shard depends on."""
    parts: list[object] = [FORMAT, generator.key, settings.seed, settings.per_cell, settings.most_overlap]
    parts += [material.evaluation.digest, sorted(material.review.items()), statistics]
    for one in wanted:
        photo = material.photo(one.narrative.image_id)
        parts += [digest_of(one.narrative), one.split, one.speaks, photo and (photo.name, sha256_of(photo))]
        parts.append(material.boxes.get(photo_name(one.narrative.image_id)))
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()


def _make(
    folder: Path,
    name: str,
    key: str,
    wanted: Sequence[_Wanted],
    statistics: RilnStatistics,
    generator: Generator,
    settings: RilnSettings,
    material: RilnMaterial,
) -> ShardMade:
    # spaCy is asked here and not by the workers: it makes no promise about threads.
    spans = [phrase_spans(one.narrative.words) for one in wanted]

    def work(both: tuple[_Wanted, list[PhraseSpan]]) -> tuple[list[RilnExample], RilnStatistics]:
        return _worked(*both, generator, settings, material)

    done = list(_mapped(work, list(zip(wanted, spans, strict=True)), settings.workers))
    with write_atomic(folder / name) as file:
        for examples, _ in done:
            file.writelines(encoded(example) + b"\n" for example in examples)
    return ShardMade(name, key, sha256_of(folder / name), total([statistics, *(part for _, part in done)]))


def _mapped(
    work: Callable[[tuple[_Wanted, list[PhraseSpan]]], tuple[list[RilnExample], RilnStatistics]],
    items: Sequence[tuple[_Wanted, list[PhraseSpan]]],
    workers: int,
) -> Iterator[tuple[list[RilnExample], RilnStatistics]]:
    if workers == 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)


def _worked(
    one: _Wanted, rule: Sequence[PhraseSpan], generator: Generator, settings: RilnSettings, material: RilnMaterial
) -> tuple[list[RilnExample], RilnStatistics]:
    """All that becomes of one narrative."""
    statistics, ledger, examples = RilnStatistics(), Ledger(), list[RilnExample]()
    spans = generator.phrases(one.narrative, rule, ledger)
    if spans:
        size_px = _size_px(material.photo(one.narrative.image_id))
        groundwork = ground(one.narrative, spans, size_px or ASSUMED_SIZE_PX)
        statistics.count_ground(groundwork, size_px is not None)
        examples = _examples(groundwork, one, generator, settings, material, statistics, ledger)
    statistics.count_examples(examples)
    statistics.count_ledger(ledger)
    return examples, statistics


def _examples(
    groundwork: Groundwork,
    one: _Wanted,
    generator: Generator,
    settings: RilnSettings,
    material: RilnMaterial,
    statistics: RilnStatistics,
    ledger: Ledger,
) -> list[RilnExample]:
    """Stages 2 and 3. Dialogues are made of those questions that passed before anybody reviewed them, so that what
    people decide about one example changes no other."""
    # Chance depends on the narrative and not on its place, so that a longer file begins with the same examples.
    rng = np.random.default_rng([settings.seed, int(digest_of(one.narrative), 16)])
    check = _Check(one, settings, material, statistics, ledger)
    asked, kept, cells = [], list[RilnExample](), list[tuple[str, str]]()
    for draft in generator.questions(groundwork, settings.per_cell, rng, ledger):
        number = cells.count((draft.level, draft.kind))
        cells.append((draft.level, draft.kind))
        passed, stays = check(question_example(groundwork, draft, number, generator.name))
        asked += [draft] if passed else []
        kept += [stays] if stays is not None else []
    if not one.speaks:
        return kept
    drafts = generator.dialogues(groundwork, asked, rng, ledger)
    spoken = [check(dialogue_example(groundwork, draft, i, generator.name)) for i, draft in enumerate(drafts)]
    dialogues = [stays for _, stays in spoken if stays is not None]
    if sum(passed for passed, _ in spoken) < FEWEST_DIALOGUES:
        ledger.reject(TOO_FEW_DIALOGUES, len(dialogues))
        return kept
    return kept + dialogues


@dataclass(frozen=True, slots=True)
class _Check:
    """All checks, in their order; what fails is counted."""

    one: _Wanted
    settings: RilnSettings
    material: RilnMaterial
    statistics: RilnStatistics
    ledger: Ledger

    def __call__(self, example: RilnExample) -> tuple[bool, RilnExample | None]:
        """Whether an example passes as it was made, and what stays of it after the review, if anything does."""
        decision = self.material.review.get(example.id)
        if decision is None or decision.digest != content_digest(example):
            stays = self._stays(example)
            return stays is not None, stays
        self.statistics.decided += 1
        decided, fault = reviewed(example, decision)
        passed = not self._found(example)[0]
        return passed, self._stays(decided, decision.decision, fault)

    def _found(self, example: RilnExample) -> tuple[str, int, int]:
        """What is wrong with an example, or nothing; and how many of its 5-grams evaluation text has, of how many."""
        photo = self.material.boxes.get(photo_name(example.image))
        fault = fault_of(example) or (box_fault(example, photo) if photo else "")
        if fault or not self.material.evaluation.sentences:
            return fault, 0, 0
        shared, grams = self.material.evaluation.shared([turn.text for turn in example.turns])
        too_much = bool(grams) and shared / grams >= self.settings.most_overlap
        return TOO_MUCH_OVERLAP if too_much else "", shared, grams

    def _stays(self, example: RilnExample, review: str = NOT_REVIEWED, fault: str = "") -> RilnExample | None:
        """The example with what was checked; None, and counted, if it has a fault. fault: that is known already."""
        found, shared, grams = (fault, 0, 0) if fault else self._found(example)
        self.statistics.grams += grams
        self.statistics.shared += shared
        if found:
            self.ledger.reject(found)
            return None
        self.statistics.kept_grams += grams
        self.statistics.kept_shared += shared
        checks = Checks(
            boxes="consistent" if photo_name(example.image) in self.material.boxes else "no boxes",
            split=self.one.split,
            overlap=round(shared / max(grams, 1), 4) if self.material.evaluation.sentences else -1.0,
            review=review,
        )
        return msgspec.structs.replace(example, checks=checks)


def _size_px(path: Path | None) -> tuple[int, int] | None:
    """Width and height of a photo; None if it is not there or cannot be read."""
    if path is None:
        return None
    try:
        return read_photo(path).size
    except InvalidFile:
        return None
