"""HL rows and their photographs made ready for Oscar: captions at every level, regions, and what a detector found as
tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from saywhere.build.coco_regions import see_tagged
from saywhere.core import InvalidFile, InvalidValue, SaywhereError
from saywhere.core.types import Progress
from saywhere.formats import hl
from saywhere.formats.hl import HLRow
from saywhere.formats.record import InvalidRecord
from saywhere.models.oscar.prepared import LevelCaption, LevelCaptions, save_level_captions
from saywhere.vision import read_photo


@dataclass(frozen=True, slots=True)
class PreparedHL:
    """captions: the folder, read. bad: rows that were left out, with the reason. unseen: photo → why it could not be
    looked at; its row is left out, too."""

    captions: LevelCaptions
    bad: tuple[InvalidRecord, ...]
    unseen: dict[str, str]


def prepare_hl(
    out: Path, splits: Mapping[str, Path], photos: Path, progress: Progress, workers: int = 2, least_word_count: int = 3
) -> PreparedHL:
    """Write a folder that the task "oscar" learns from. splits: HL files by name; "train" must be among them.

    photos: the folder with the photographs that rows name; any ending is taken, so that shrunk copies will do. What was
    seen is kept in out/looks, so that an interrupted run goes on where it was. least_word_count: rarer words are
    unknown.
    """
    rows: dict[str, list[HLRow]] = {}
    bad: list[InvalidRecord] = []
    for split, path in splits.items():
        for row in hl.read(path):
            if isinstance(row, InvalidRecord):
                bad.append(row)
            else:
                rows.setdefault(split, []).append(row)
    files, unseen = _photo_files([row.file_name for some in rows.values() for row in some], photos)
    if not files:
        raise InvalidFile(photos, "holds none of the photos that the rows name", "are they the right ones?")
    seen = see_tagged(list(dict.fromkeys(files.values())), out / "looks", progress, workers)
    about = {"files": {split: path.name for split, path in splits.items()}, "photos": len(files)}
    save_level_captions(out, seen, _captions(rows, files), about, least_word_count)
    return PreparedHL(LevelCaptions(out), tuple(bad), unseen)


def _photo_files(names: Sequence[str], photos: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Photo as rows name it → its file; and why others cannot be had."""
    if not photos.is_dir():
        raise InvalidFile(photos, "is not a folder")
    by_stem = {path.stem: path for path in sorted(photos.iterdir()) if path.is_file()}
    files: dict[str, Path] = {}
    unseen: dict[str, str] = {}
    for name in dict.fromkeys(names):
        path = by_stem.get(PurePath(name).stem)
        if path is None:
            unseen[name] = "is not in the folder"
            continue
        try:
            read_photo(path)
        except SaywhereError as error:
            unseen[name] = str(error)
        else:
            files[name] = path
    return files, unseen


def _captions(rows: Mapping[str, Sequence[HLRow]], files: Mapping[str, Path]) -> Iterator[LevelCaption]:
    for split, some in rows.items():
        for row in some:
            if row.file_name in files:
                for level, texts in row.captions.items():
                    for number, text in enumerate(texts):
                        name = f"{split}-{row.file_name}-{level}-{number}"
                        yield LevelCaption(name, files[row.file_name].stem, split, level, text)


def parse_hl_splits(given: Sequence[str]) -> dict[str, Path]:
    """ "train=train.jsonl" … as files by name."""
    splits: dict[str, Path] = {}
    for text in given:
        name, _, path = text.partition("=")
        if not name or not path:
            raise InvalidValue("split", f"{text!r} is not of the form NAME=FILE")
        if name in splits:
            raise InvalidValue("split", f"{name!r} is given twice")
        splits[name] = Path(path)
    for needed in ("train", "validation"):
        if needed not in splits:
            raise InvalidValue("splits", f"are {', '.join(splits) or 'none'}", f"add {needed}=FILE")
    return splits
