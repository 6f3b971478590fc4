"""`saywhere build questions`, `priors` and `pairs`: questions out of boxes, splits whose answer priors change, and ones
in which things meet in the test that never meet in training.

`build visual-words` makes the word list that both the questions' colours and captions with attention use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from saywhere.cli.console import counted, out, stages, tell_left_out
from saywhere.core.errors import InvalidFile
from saywhere.formats.files import find_photo
from saywhere.formats.record import InvalidRecord

if TYPE_CHECKING:
    from saywhere.build.box_questions import BoxQuestion
    from saywhere.build.changing_priors import PriorSplit
    from saywhere.build.photo_boxes import PhotoBoxes


Output = Annotated[
    Path, typer.Option("--out", "-o", help="File to write (.json); answers and boxes to look at go beside it.")
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]


def questions(
    boxes: Annotated[
        Path,
        typer.Argument(
            help="COCO instances, or JSON: image → [[class, x, y, w, h], …] in fractions.", show_default=False
        ),
    ],
    photos: Annotated[Path, typer.Option(help="Folder with the photos; boxes of other photos are left out.")],
    output: Output,
    captions: Annotated[
        Path | None, typer.Option(help="COCO captions of the photos, for colours and to know what is absent.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Generate questions about photos from the boxes of their things, with the boxes one must look at.

    Bad boxes and photos that are missing are named, counted and left out; then the exit code is 1.
    """
    import numpy as np

    from saywhere.build.box_questions import ask
    from saywhere.build.photo_boxes import read_photo_boxes
    from saywhere.build.question_files import write_box_questions
    from saywhere.cli.provenance import provenance

    if not photos.is_dir():
        raise InvalidFile(photos, "is not a folder")
    found, bad = read_photo_boxes(boxes)
    here = [photo for photo in found if find_photo(photos, photo.image) is not None]
    bad += [InvalidRecord(str(boxes), 0, f"has no photo in {photos}", photo) for photo in _missing(found, here)]
    if not here:
        raise InvalidFile(photos, f"has none of the {len(found):,} photos of {boxes.name}")
    said = _captions(captions, bad) if captions is not None else None
    made = list(counted(ask(here, np.random.default_rng(seed), said), "asking"))
    info = {"description": "questions from boxes", "seed": seed, "made_by": provenance([boxes])}
    files = write_box_questions(output, made, info)
    out.print(_question_table(made))
    tell_left_out(bad)
    names = ", ".join(file.name for file in files)
    out.print(f"{len(made):,} questions about {len(here):,} photos, {len(bad):,} bad records: {names}", markup=False)
    if bad:
        raise typer.Exit(1)


def priors(
    questions_file: Annotated[Path, typer.Argument(metavar="QUESTIONS", help="VQA questions.", show_default=False)],
    annotations: Annotated[Path, typer.Argument(help="VQA annotations with the answers.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write: a pair of files for each side.")],
    strength: Annotated[
        float, typer.Option(min=0, max=1, help="How far priors change: 0, not at all; 1, the test's are reversed.")
    ] = 1.0,
    seed: Seed = 0,
) -> None:
    """Split VQA questions so that answers have another prior in test than in training, as VQA-CP does.

    Bad records are named, counted and left out; then the exit code is 1.
    """
    import numpy as np

    from saywhere.build.changing_priors import PriorSettings, asked_of, split_by_priors
    from saywhere.build.question_files import beside, write_vqa
    from saywhere.cli.provenance import provenance
    from saywhere.formats import vqa
    from saywhere.formats.vqa import Question

    good: list[Question] = []
    bad: list[InvalidRecord] = []
    for value in counted(vqa.read(questions_file, annotations), f"reading {questions_file.name}"):
        if isinstance(value, InvalidRecord):
            bad.append(value)
        else:
            good.append(value)
    if not good:
        raise InvalidFile(questions_file, f"has no question with answers, {len(bad):,} bad records")
    asked = [asked_of(question) for question in good]
    split = split_by_priors(asked, np.random.default_rng(seed), PriorSettings(strength=strength))
    output.mkdir(parents=True, exist_ok=True)
    info = {"strength": strength, "seed": seed, "made_by": provenance([questions_file, annotations])}
    for side, indices in split.sides.items():
        path = output / f"{side}.json"
        write_vqa(path, beside(path, "annotations"), [good[i] for i in indices], {**info, "side": side})
    out.print(_prior_table(split))
    tell_left_out(bad)
    if split.left_as_they_are:
        out.print(f"left as they are: {', '.join(split.left_as_they_are)}", markup=False)
    kept = sum(map(len, split.sides.values()))
    out.print(f"{output}: {kept:,} kept, {len(split.dropped):,} dropped, {len(bad):,} bad records", markup=False)
    if bad:
        raise typer.Exit(1)


def pairs(
    boxes: Annotated[
        Path,
        typer.Argument(
            help="COCO instances, or JSON: image → [[class, x, y, w, h], …] in fractions.", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="File to write (.json), for `prepare captions --split`.")],
    test: Annotated[float, typer.Option(min=0, max=1, help="At most this share of the photos is for the test.")] = 0.15,
    least: Annotated[int, typer.Option(min=1, help="On how many photos a pair must be.")] = 20,
    seed: Seed = 0,
) -> None:
    """Split photos so that pairs of things meet in the test that never meet in training, for captioners.

    Bad boxes are named, counted and left out; then the exit code is 1.
    """
    import msgspec
    import numpy as np

    from saywhere.atomic import write_atomic
    from saywhere.build.photo_boxes import read_photo_boxes
    from saywhere.build.unseen_pairs import PairSettings, split_by_pairs
    from saywhere.cli.provenance import provenance

    found, bad = read_photo_boxes(boxes)
    classes = {photo.image: photo.classes for photo in found}
    split = split_by_pairs(classes, np.random.default_rng(seed), PairSettings(test=test, least=least))
    info = {"pairs": [[*pair, count] for pair, count in split.pairs.items()], "seed": seed}
    images = [{"file_name": photo, "split": side} for side, photos in split.sides.items() for photo in photos]
    with write_atomic(output) as file:
        file.write(msgspec.json.encode({"info": {**info, "made_by": provenance([boxes])}, "images": images}))
    tell_left_out(bad)
    counts = ", ".join(f"{len(photos):,} {side}" for side, photos in split.sides.items())
    out.print(f"{output}: {len(split.pairs):,} pairs; {counts}; {len(bad):,} bad records", markup=False)
    if bad:
        raise typer.Exit(1)


def visual_words(
    files: Annotated[
        list[Path],
        typer.Argument(help="Captions: COCO files, or one per line; .gz is read as well.", show_default=False),
    ],
    wordnet: Annotated[Path, typer.Option(help="Folder with data.noun, index.noun and noun.exc of WordNet.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="File to write (.tsv).")],
) -> None:
    """Make the list of visual words anew: words of captions with the class of COCO that each names."""
    from saywhere.build.memory import read_sentences
    from saywhere.build.visual_words import WordClasses, find_visual_words, write_table
    from saywhere.build.wordnet import WordNetNouns

    classes = WordClasses(WordNetNouns(wordnet))
    captions: list[str] = []
    bad: list[InvalidRecord] = []
    for path in files:
        for item in counted(read_sentences(path), f"reading {path.name}"):
            if isinstance(item, InvalidRecord):
                bad.append(item)
            else:
                captions.append(item)
    with stages() as progress:
        rows = find_visual_words(captions, classes, progress)
    write_table(output, rows)
    tell_left_out(bad)
    sources = ", ".join(f"{count:,} by {name}" for name, count in Counter(row.source for row in rows).most_common())
    out.print(f"{output}: {len(rows):,} words ({sources}), {len(bad):,} bad records", markup=False)
    if bad:
        raise typer.Exit(1)


def _missing(found: Sequence[PhotoBoxes], here: Sequence[PhotoBoxes]) -> list[str]:
    there = {photo.image for photo in here}
    return [photo.image for photo in found if photo.image not in there]


def _captions(path: Path, bad: list[InvalidRecord]) -> dict[str, list[str]]:
    """Photo → its captions; those that cannot be read are collected."""
    from saywhere.build.photo_boxes import photo_name
    from saywhere.formats import coco_captions

    said: dict[str, list[str]] = defaultdict(list)
    for record in counted(coco_captions.read(path), f"reading {path.name}"):
        if isinstance(record, InvalidRecord):
            bad.append(record)
        else:
            said[photo_name(record.image_id)].append(record.caption)
    return said


def _question_table(made: Iterable[BoxQuestion]) -> Table:
    answers: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    looked: Counter[tuple[str, str]] = Counter()
    for one in made:
        kind = one.question_type, one.answer_type
        answers[kind][one.answer] += 1
        looked[kind] += len(one.boxes_xyxy) > 0
    table = Table("question type", "answer type", "questions", "with boxes", "most frequent answers", box=None)
    for kind, counts in answers.items():
        most = ", ".join(f"{answer} {count:,}" for answer, count in counts.most_common(6))
        table.add_row(*kind, f"{counts.total():,}", f"{looked[kind]:,}", most)
    return table


def _prior_table(split: PriorSplit) -> Table:
    table = Table("question type", "kept", "dropped", "train", "changed test", "distance", "same test", box=None)
    for report in split.types:
        cells: list[Any] = [report.question_type, sum(report.kept.values()), sum(report.dropped.values())]
        for side in ("train", "test_changed"):
            shares = list(report.priors[side].items())[:3]
            cells.append(", ".join(f"{answer} {share:.0%}" for answer, share in shares))
        cells += [f"{report.distance():.2f}", f"{report.distance('train', 'test_same'):.2f}"]
        table.add_row(*map(str, cells))
    return table
