"""Files of others made ready for training, for every family: what `saywhere prepare` does.

Regions come from any source that `saywhere.models.region_features.open_features` opens, what `saywhere look` wrote
among them. What cannot be used is left out, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import ArrayLike

from saywhere.build.base import plain
from saywhere.build.coco_regions import see_tagged
from saywhere.build.memory import collect
from saywhere.build.photo_boxes import photo_name
from saywhere.build.question_files import read_attention
from saywhere.core import AttentionMap, InvalidFile, InvalidValue, Narrative, SaywhereError
from saywhere.core.types import Floats, Progress
from saywhere.engine import Engine
from saywhere.explain.human import human_importance, mean_attention, overlap_importance
from saywhere.formats import coco_captions, hat, hl, vqa
from saywhere.formats.hl import HLRow
from saywhere.formats.record import InvalidRecord
from saywhere.formats.split_lists import image_key
from saywhere.language.embed import TextEncoder
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.mitr.batch import example_of
from saywhere.models.mitr.prepared import PreparedNarrative, save_prepared, split_of
from saywhere.models.oscar.prepared import LevelCaption, LevelCaptions, save_level_captions
from saywhere.models.patchioner.data import save_pairs, save_texts
from saywhere.models.prepared import TRAIN
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown import Captions, PreparedCaption, PreparedQuestion, Questions, save_captions, save_questions
from saywhere.vision import StoredViews, read_photo

Splits = Mapping[str, tuple[Path, ...]]
"""The files of every split, by its name."""

_Importance = Callable[[ArrayLike], Floats]
"""From (r, 4) boxes of regions to (r,) importances."""
_MAP_PX = (64, 64)


@dataclass(frozen=True, slots=True)
class Preparation:
    """What became of the data. counts: by name. left_out: records, items and photos, each with the reason."""

    counts: Mapping[str, int]
    left_out: tuple[str, ...]


def parse_splits(given: Sequence[str], form: str, needed: Sequence[str] = ("train",)) -> Splits:
    """ "train=a.json,b.json" … as files by name. form: what stands after NAME=, "QUESTIONS,ANSWERS" for two files."""
    splits: dict[str, tuple[Path, ...]] = {}
    for text in given:
        name, _, files = text.partition("=")
        paths = files.split(",")
        if not name or not all(paths) or len(paths) != len(form.split(",")):
            raise InvalidValue("split", f"{text!r} is not of the form NAME={form}")
        if name in splits:
            raise InvalidValue("split", f"{name!r} is given twice")
        splits[name] = tuple(map(Path, paths))
    for name in needed:
        if name not in splits:
            raise InvalidValue("splits", f"are {', '.join(splits) or 'none'}", f"add {name}={form}")
    return splits


def prepare_narratives(
    out: Path,
    narratives: Iterable[Narrative],
    features: Mapping[str, RegionFeatures],
    about: Mapping[str, object],
    max_words: int = 100,
    vocabulary_size: int = 10_000,
    splits: Mapping[str, str] | None = None,
) -> Preparation:
    """For the task "mitr". Narratives without words, or of images without features, are counted and left out.

    splits: image key → split, as `saywhere.formats.split_lists` reads official lists; images that they do not name are
    left out, too. Without, the image's name alone decides.
    """
    counts = {"train": 0, "validation": 0, "test": 0, "without features": 0, "without words": 0, "in no split": 0}
    kept: list[tuple[str, str, Narrative]] = []
    for narrative in narratives:
        name = _named(narrative.image_id, features)
        if not narrative.words:
            counts["without words"] += 1
        elif name is None:
            counts["without features"] += 1
        elif split := _split(narrative.image_id, splits):
            counts[split] += 1
            kept.append((split, name, narrative))
        else:
            counts["in no split"] += 1
    for split in ("train", "validation", "test"):
        if not counts[split]:
            raise InvalidFile(out, f"no narrative falls into the split {split!r}: too few images have features")
    vocabulary = Vocabulary.of_words([n.caption for split, _, n in kept if split == "train"], vocabulary_size)
    # Words and boxes of an example depend on no image: one stands for all, and none is kept.
    any_image = features[kept[0][1]]
    rows = []
    for split, image, narrative in kept:
        one = example_of(any_image, narrative, vocabulary, max_words)
        rows.append(PreparedNarrative(image, split, one.words, one.boxes, one.located, one.name))
    save_prepared(out, features, rows, vocabulary, about)
    return Preparation(counts, ())


def prepare_captions(
    out: Path,
    files: Sequence[tuple[str, Path]],
    features: Mapping[str, RegionFeatures],
    least_word_count: int = 5,
    splits: Mapping[str, str] | None = None,
) -> Preparation:
    """COCO captions for the task "updown-caption".

    files: each with the split that its captions are of, unless splits tell that: see `prepare_narratives`.
    """
    captions: list[PreparedCaption] = []
    bad: list[str] = []
    unlisted = 0
    for given, path in files:
        for one in coco_captions.read(path):
            if isinstance(one, InvalidRecord):
                bad.append(str(one))
                continue
            split = given if splits is None else splits.get(image_key(one.image_id))
            if split is None:
                unlisted += 1
                continue
            image = _named(one.image_id, features) or str(one.image_id)
            captions.append(PreparedCaption(f"{split}-{one.caption_id}", image, split, one.caption))
    if not any(caption.split == TRAIN for caption in captions):
        raise InvalidFile(out, f"no caption falls into the split {TRAIN!r}")
    about = [path.name for _, path in files] if splits else {given: [path.name] for given, path in files}
    save_captions(out, features, captions, {"files": about}, least_word_count)
    made = Captions(out)
    counts = made.counts if splits is None else {**made.counts, "in no split": unlisted}
    return Preparation(counts, (*bad, *(f"caption {one.id}: {one.reason}" for one in made.skipped)))


def prepare_questions(
    out: Path,
    splits: Splits,
    features: Mapping[str, RegionFeatures],
    attention: Path | None,
    progress: Progress,
    least_count: int = 9,
) -> Preparation:
    """VQA v2, VQA-CP or alike for the tasks "updown-vqa" and "hint-vqa".

    attention: a folder of VQA-HAT maps, or a JSON of boxes to look at, as `saywhere build questions` writes it. Where
    it cannot be used, the question stays without. least_count: how often an answer must be right to be one.
    """
    left_out: list[str] = []
    looks = {} if attention is None else _looks(attention, left_out)
    asked: list[PreparedQuestion] = []
    for split, (questions, answers) in splits.items():
        for one in vqa.read(questions, answers):
            progress(f"reading questions ({split})", len(asked) + 1, 0)
            if isinstance(one, InvalidRecord):
                left_out.append(str(one))
                continue
            key, image = str(one.question_id), _named(one.image_id, features)
            importance = None
            if image is not None and (looked := looks.pop(key, None)) is not None:
                try:
                    importance = looked(features[image].boxes_xyxy.astype(np.float64))
                except InvalidValue as error:
                    left_out.append(f"question {key}: human attention {error}")
            kinds = (one.question_type, one.answer_type)
            name = image or str(one.image_id)
            asked.append(PreparedQuestion(key, name, split, one.text, *kinds, one.answers, importance))
    save_questions(out, features, asked, _files(splits), least_count)
    made = Questions(out)
    counts = {**made.counts, "attention maps of no question": len(looks)} if looks else made.counts
    return Preparation(counts, (*left_out, *(f"question {one.id}: {one.reason}" for one in made.skipped)))


def prepare_levels(
    out: Path, splits: Splits, photos: Path, progress: Progress, engine: Engine, least_word_count: int = 3
) -> Preparation:
    """HL rows for the task "oscar": captions at every level, regions of their photos, and what was detected as tags.

    photos: the folder with the photographs that rows name; any ending is taken, so that shrunk copies will do. What was
    seen is kept in out/looks, so that an interrupted run goes on where it was.
    """
    rows: dict[str, list[HLRow]] = {split: [] for split in splits}
    left_out: list[str] = []
    for split, (path,) in splits.items():
        for row in hl.read(path):
            if isinstance(row, InvalidRecord):
                left_out.append(str(row))
            else:
                rows[split].append(row)
    files, unseen = _photo_files([row.file_name for some in rows.values() for row in some], photos)
    if not files:
        raise InvalidFile(photos, "holds none of the photos that the rows name", "are they the right ones?")
    seen = see_tagged(list(dict.fromkeys(files.values())), out / "looks", progress, engine)
    about = {**_files(splits), "photos": len(files)}
    save_level_captions(out, seen, _level_captions(rows, files), about, least_word_count)
    made = LevelCaptions(out)
    left_out += [*unseen, *(f"caption {one.id}: {one.reason}" for one in made.skipped)]
    return Preparation(
        {"captions": len(made), **{f"of {name}": count for name, count in made.levels.items()}}, tuple(left_out)
    )


def prepare_sentences(
    out: Path, files: Sequence[Path], encoder: TextEncoder, progress: Progress, vocabulary_size: int = 8000
) -> Preparation:
    """Sentences of any files for the task "patchioner-decoder"; those that are there already are not taken again."""
    collected = collect(files, progress=progress)
    sentences = [text for text in map(plain, collected.sentences) if text]
    # All at once: an engine opens the encoder in its workers for each call.
    vectors = encoder.embed(sentences, progress=progress)
    about = {"encoder": dict(encoder.fingerprint)}
    save_texts(out, sentences, vectors, Vocabulary.of_words(sentences, vocabulary_size), about)
    counts = {"sentences": len(sentences), "there already": collected.again}
    return Preparation(counts, tuple(map(str, collected.bad)))


def prepare_pairs(
    out: Path, captions: Path, views: StoredViews, encoder: TextEncoder, progress: Progress
) -> Preparation:
    """Photos with their COCO captions for the task "patchioner-alignment"."""
    told: dict[str, list[str]] = {}
    left_out: list[str] = []
    for one in coco_captions.read(captions):
        image = None if isinstance(one, InvalidRecord) else _named(one.image_id, views)
        if isinstance(one, InvalidRecord):
            left_out.append(str(one))
        elif image is None:
            left_out.append(f"caption {one.caption_id}: its photo {one.image_id} has no view")
        else:
            told.setdefault(image, []).append(one.caption)
    if not told:
        raise InvalidFile(captions, "has no caption of a photo that was looked at", "are they the same photos?")
    features: Floats = np.stack([views[image].whole for image in told])
    texts = [text for some in told.values() for text in some]
    owners = np.repeat(np.arange(len(told)), [len(some) for some in told.values()])
    about = {"encoder": views.encoder, "text_encoder": dict(encoder.fingerprint)}
    save_pairs(out, features, encoder.embed(texts, progress=progress), owners, about)
    return Preparation({"photos": len(told), "captions": len(texts)}, tuple(left_out))


def _files(splits: Splits) -> dict[str, object]:
    return {"files": {split: [path.name for path in paths] for split, paths in splits.items()}}


def _split(image_id: str, splits: Mapping[str, str] | None) -> str | None:
    return split_of(image_id) if splits is None else splits.get(image_key(image_id))


def _named(image_id: int | str, there: Mapping[str, object]) -> str | None:
    """Under which name an image is there: as it stands, or COCO's number in twelve digits; None if it is not."""
    return next((name for name in (str(image_id), photo_name(image_id)) if name in there), None)


def _looks(path: Path, left_out: list[str]) -> dict[str, _Importance]:
    """Question → how important regions are to people who answer it; several people count the same. Of boxes that they
    are to look at, a region is as important as it fits one: all that lies around a box holds it, too."""
    if path.is_file():
        boxes = read_attention(path)
        return {str(key): partial(overlap_importance, asked_xyxy=some) for key, some in boxes.items() if len(some)}
    people: dict[str, list[AttentionMap]] = {}
    for one in hat.read(path):
        if isinstance(one, InvalidRecord):
            left_out.append(str(one))
        else:
            people.setdefault(str(one.question_id), []).append(one.attention.resized(_MAP_PX))
    return {key: partial(human_importance, mean_attention(maps, _MAP_PX)) for key, maps in people.items()}


def _photo_files(names: Sequence[str], photos: Path) -> tuple[dict[str, Path], list[str]]:
    """Photo as rows name it → its file; and why others cannot be had."""
    if not photos.is_dir():
        raise InvalidFile(photos, "is not a folder")
    by_stem = {path.stem: path for path in sorted(photos.iterdir()) if path.is_file()}
    files: dict[str, Path] = {}
    unseen: list[str] = []
    for name in dict.fromkeys(names):
        path = by_stem.get(PurePath(name).stem)
        try:
            if path is None:
                raise InvalidFile(name, "is not in the folder")
            read_photo(path)
        except SaywhereError as error:
            unseen.append(str(error))
        else:
            files[name] = path
    return files, unseen


def _level_captions(rows: Mapping[str, Sequence[HLRow]], files: Mapping[str, Path]) -> Iterator[LevelCaption]:
    for split, some in rows.items():
        for row in some:
            if row.file_name in files:
                for level, texts in row.captions.items():
                    for number, text in enumerate(texts):
                        name = f"{split}-{row.file_name}-{level}-{number}"
                        yield LevelCaption(name, files[row.file_name].stem, split, level, text)
