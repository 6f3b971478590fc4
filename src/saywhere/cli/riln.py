"""`saywhere build riln`: instructions with reasoning out of narratives."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.cli.console import err, out, stages, tell_left_out
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats.files import find_photo, read_lines
from saywhere.formats.record import InvalidRecord

if TYPE_CHECKING:
    from PIL import Image

    from saywhere.build.photo_boxes import PhotoBoxes
    from saywhere.build.riln.drafts import Generator
    from saywhere.build.riln.example import RilnExample
    from saywhere.build.riln.overlap import EvaluationText
    from saywhere.build.riln.pipeline import RilnManifest
    from saywhere.build.riln.roles import RoleSettings


def riln(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="NARRATIVES...",
            help="Narratives in any format: files, or folders of worlds. Video narratives and tagged narrations, too.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write. A run that was stopped goes on there.")],
    photos: Annotated[
        Path | None, typer.Option(help="Folder with the photos: their sizes, for models to see, and for the review.")
    ] = None,
    boxes: Annotated[
        Path | None, typer.Option(help="Boxes of the photos: COCO instances, or image → [[class, x, y, w, h], …].")
    ] = None,
    evaluation: Annotated[
        list[Path] | None, typer.Option(help="Text that models are evaluated on; may be given several times.")
    ] = None,
    keep_out: Annotated[Path | None, typer.Option(help="Images to leave out: one name a line.")] = None,
    any_split: Annotated[
        bool, typer.Option("--any-split", help="Take narratives of evaluation splits as well. For trying out only.")
    ] = False,
    per_cell: Annotated[int, typer.Option(min=1, max=20, help="Questions of each level and kind for a narrative.")] = 1,
    most_overlap: Annotated[
        float, typer.Option(min=0.001, max=1, help="Drop an example that shares this part of its 5-grams, or more.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    shard: Annotated[int, typer.Option(min=1, help="Narratives in one file of examples.")] = 64,
    llm: Annotated[
        str | None, typer.Option(help="Generate with the OpenAI-compatible endpoint at this address, ending in /v1.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The endpoint's name of the model.")] = None,
    roles: Annotated[
        Path | None, typer.Option(help="A model for each role, from a TOML file; see the guide. Instead of --llm.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many narratives to ask models about at a time.")] = 4,
    review: Annotated[
        Path | None, typer.Option(help="Decisions of people, as exported from review.html: applied to the examples.")
    ] = None,
    review_examples: Annotated[int, typer.Option(min=0, help="How many examples to put on the review sheet.")] = 60,
    instructions: Annotated[
        Path | None, typer.Option(help="Also write the examples here as TraceVLM's recipes read them.")
    ] = None,
) -> None:
    """Make a RILN data set of narratives: questions with reasoning on four levels, and dialogues.

    Without a model everything is made by built-in rules, offline. Answers of models are kept in the folder as they come
    and never asked for again. What cannot be used is counted by reason, in report.md.
    """
    from saywhere.build.riln.picture import draw_statistics
    from saywhere.build.riln.pipeline import RilnMaterial, RilnSettings, build_riln
    from saywhere.build.riln.report import price_of, write_report
    from saywhere.build.riln.review import read_review, sampled, write_review_sheet
    from saywhere.build.riln.selection import Selection
    from saywhere.build.riln.sources import read_told
    from saywhere.plots.sheet import save_png

    if output.exists() and not output.is_dir():
        raise InvalidFile(output, "is a file, and a folder is needed here")
    for path in files:
        if not path.exists():
            raise InvalidFile(path, "does not exist")
    settings_of = _roles(llm, model, roles)
    photo = _finder(photos)
    found_boxes = _boxes(boxes)
    text = _evaluation(evaluation or [])
    decisions = read_review(review) if review is not None else {}
    material = RilnMaterial(text, found_boxes, decisions, Selection(any_split, _kept_out(keep_out)), photo)
    generator, settings = (
        _generator(settings_of, output, photo),
        RilnSettings(seed, per_cell, shard, workers if settings_of else 1, most_overlap),
    )
    source = chain.from_iterable(read_told(path, found_boxes) for path in files)
    with stages() as progress:
        made = build_riln(source, output, generator, settings, material, progress, _expected(files))
    write_report(output, made, text, settings_of, _command())
    save_png(draw_statistics(made.statistics), output / "statistics.png")
    if review_examples:
        write_review_sheet(sampled(_examples(output), review_examples, seed), output / "review.html", photo)
    if instructions is not None:
        _instruct(output, instructions, photos, made.statistics.examples)
    _tell(made, output, price_of(made.statistics, settings_of), bool(settings_of))
    if not made.statistics.examples:
        err.print("nothing became an example", style="yellow")
        raise typer.Exit(1)


def _roles(llm: str | None, model: str | None, roles: Path | None) -> Mapping[str, RoleSettings] | None:
    from saywhere.build.riln.roles import read_roles, same_for_all

    if (llm is None) != (model is None):
        raise InvalidValue("--llm and --model", "belong together", "give both or neither")
    if roles is not None and llm is not None:
        raise InvalidValue("--roles and --llm", "exclude each other")
    if roles is not None:
        return read_roles(roles)
    return same_for_all(llm, model) if llm and model else None


def _generator(
    roles: Mapping[str, RoleSettings] | None, output: Path, photo: Callable[[str], Path | None]
) -> Generator:
    from saywhere.build.llm import AnswerCache, Chat
    from saywhere.build.riln.endpoint import EndpointGenerator
    from saywhere.build.riln.pipeline import ANSWERS
    from saywhere.build.riln.templates import TemplateGenerator
    from saywhere.vision.photo import read_photo

    if roles is None:
        return TemplateGenerator()
    cache = AnswerCache(output / ANSWERS)

    def picture(image_id: str) -> Image.Image | None:
        path = photo(image_id)
        try:
            return read_photo(path) if path is not None else None
        except InvalidFile:
            return None

    return EndpointGenerator({role: Chat(settings.endpoint, cache) for role, settings in roles.items()}, picture)


def _finder(folder: Path | None) -> Callable[[str], Path | None]:
    """Where the photo of an image is; a video's key frame lies in a folder of the video's name."""
    if folder is not None and not folder.is_dir():
        raise InvalidFile(folder, "is not a folder")

    def find(image_id: str) -> Path | None:
        if folder is None:
            return None
        video, _, name = image_id.rpartition("/")
        safe = not video or (Path(video).name == video and video != "..")
        if not safe or not name:
            return None
        # A world numbers its photos in six digits, and its narratives in none.
        return find_photo(folder / video, name) or (find_photo(folder, name.zfill(6)) if name.isdigit() else None)

    return find


def _boxes(path: Path | None) -> dict[str, PhotoBoxes]:
    from saywhere.build.photo_boxes import read_photo_boxes

    if path is None:
        return {}
    found, bad = read_photo_boxes(path)
    tell_left_out(bad)
    return {photo.image: photo for photo in found}


def _evaluation(paths: Sequence[Path]) -> EvaluationText:
    from saywhere.build.memory import read_sentences
    from saywhere.build.riln.overlap import EvaluationText

    bad: list[InvalidRecord] = []

    def sentences() -> Iterator[str]:
        for item in chain.from_iterable(read_sentences(path) for path in paths):
            if isinstance(item, InvalidRecord):
                bad.append(item)
            else:
                yield item

    text = EvaluationText.of(sentences())
    tell_left_out(bad)
    if paths and not text.sentences:
        raise InvalidFile(paths[0], "holds no sentence to compare with")
    return text


def _kept_out(path: Path | None) -> frozenset[str]:
    from saywhere.build.photo_boxes import photo_name

    if path is None:
        return frozenset()
    lines = [item for item in read_lines(path) if not isinstance(item, InvalidRecord)]
    return frozenset(photo_name(line.decode("utf-8", "replace").strip()) for _, line in lines)


def _expected(files: Sequence[Path]) -> int:
    """How many lines the files have, which is how many records most formats have."""
    inside = [path / "narratives.jsonl" if path.is_dir() else path for path in files]
    return sum(1 for path in inside if path.is_file() for _ in read_lines(path))


def _instruct(output: Path, folder: Path, photos: Path | None, count: int) -> None:
    """Write the examples as instructions, and say of which images the recipes will not find the photo."""
    from saywhere.build.riln.instructions import write_instructions

    with stages() as progress:
        made = write_instructions(_examples(output), folder, photos, _finder(photos), progress, count)
    out.print(f"{folder}: {made.train:,} instructions, {made.validation:,} more for validation", markup=False)
    if photos is None:
        err.print("without --photos images are named without an ending: recipes find no photo", style="yellow")
    elif made.absent:
        told = f"{photos} lacks the photos of {len(made.absent):,} images, first {made.absent[0]!r}"
        err.print(f"{told}: recipes will not find them", markup=False, style="yellow")


def _examples(output: Path) -> Iterator[RilnExample]:
    from saywhere.build.riln.example import RilnExample, read_riln

    return (one for one in read_riln(output) if isinstance(one, RilnExample))


def _command() -> str:
    return f"saywhere {shlex.join(sys.argv[1:])}"


def _tell(made: RilnManifest, output: Path, price: float, asked: bool) -> None:
    found = made.statistics
    rows = [
        ("records", f"{found.records:,}"),
        ("narratives used", f"{found.narratives:,} on {len(found.images):,} images"),
        ("questions", f"{sum(found.questions.values()):,}"),
        ("dialogues", f"{found.dialogues:,}"),
        ("points", f"{found.points_before:,} → {found.points_after:,}"),
    ]
    if found.kept_overlap is not None:
        rows.append(("5-gram overlap", f"{found.overlap or 0:.2%} generated, {found.kept_overlap:.2%} kept"))
    if asked:
        tokens = sum(found.prompt_tokens.values()), sum(found.answer_tokens.values())
        rows.append(("answers of models", f"{sum(found.calls.values()):,}, tokens {tokens[0]:,} + {tokens[1]:,}"))
        rows.append(("price", f"{price:.4f}"))
    lost = sorted(found.rejections.items(), key=lambda both: (-both[1], both[0]))
    rows += [(f"rejected: {reason}", f"{count:,}") for reason, count in lost]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        out.print(f"{name:<{width}}  {value}", markup=False)
    if made.unfit:
        lost_ones = f"{made.unfit:,} of {made.decisions:,} decisions are about a text that is not there"
        err.print(f"{lost_ones}: they were not applied", style="yellow")
    if found.unanswered:
        err.print(f"{found.unanswered:,} questions got no answer: run this again to ask them", style="yellow")
    names = "examples-*.jsonl, manifest.json, report.md, statistics.png, review.html"
    out.print(f"{output}: {found.examples:,} examples ({names})", markup=False)
