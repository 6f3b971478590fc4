"""The tree of commands, and how any error ends."""

from __future__ import annotations

import shutil
import sys
import tempfile
from typing import Annotated

import typer

import saywhere
from saywhere.atomic import FULL
from saywhere.cli import (
    answers,
    asking,
    assets,
    batch,
    benchmark,
    build,
    chatting,
    coco,
    collect,
    cutting,
    data,
    database,
    describing,
    exchange,
    eye,
    finding,
    library,
    look,
    masks,
    naming,
    people,
    prepare,
    questions,
    referring,
    report,
    reproduce,
    riln,
    score,
    score_photos,
    score_places,
    seeing,
    study,
    trace,
    training,
    video,
    world,
)
from saywhere.cli.console import err
from saywhere.core.errors import SaywhereError
from saywhere.vision import keep_freed_memory

_LEAST_ROOM = 2**20
"""Bytes; with less, a disk is full."""

app = typer.Typer(
    name="saywhere",
    help="Images, language and human attention: where people look or point, and what they say.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("caption")(seeing.caption)
app.command("scene")(seeing.scene)
app.command("ground")(seeing.ground)
app.command("narrate")(seeing.narrate)
app.command("describe")(describing.describe)
app.command("answer")(asking.answer)
app.command("why")(asking.why)
app.command("find")(finding.find)
app.command("segment")(cutting.segment)
app.command("chat")(chatting.chat)
app.command("look")(look.look)
app.command("batch")(batch.batch)
app.command("index")(library.index)
app.command("search")(library.search)
app.add_typer(exchange.app, name="studio")
app.add_typer(study.app, name="study")
app.add_typer(collect.app, name="collect")
app.add_typer(people.app, name="people")
app.add_typer(database.app, name="database")
app.add_typer(data.app, name="data")
score.app.command("referring")(score_places.referring)
score.app.command("regions")(score_places.regions)
score.app.command("photo-captions")(score_photos.photo_captions)
app.add_typer(video.app, name="video")
app.add_typer(score.app, name="score")
app.add_typer(world.app, name="world")
app.add_typer(prepare.app, name="prepare")
app.command("train")(training.train)
app.command("eval")(training.evaluate)
app.command("export")(training.export)
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(report.app, name="report")
build.app.command("questions")(questions.questions)
build.app.command("priors")(questions.priors)
build.app.command("pairs")(questions.pairs)
build.app.command("coco")(coco.coco)
build.app.command("eye")(eye.eye)
build.app.command("with-eye")(eye.with_eye)
build.app.command("matching")(eye.matching)
build.app.command("naming")(naming.naming)
build.app.command("text-writer")(eye.text_writer)
build.app.command("model")(eye.model)
build.app.command("referring")(referring.referring)
build.app.command("answers")(answers.answers)
build.app.command("visual-words")(questions.visual_words)
build.app.command("trace-benchmark")(benchmark.trace_benchmark)
build.app.command("riln")(riln.riln)
build.app.command("masks")(masks.masks)
build.app.command("trace")(trace.trace)
app.add_typer(build.app, name="build")
app.add_typer(assets.app, name="assets")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"saywhere {saywhere.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. Errors that saywhere raises on purpose are said in one line and end with exit code 2."""
    keep_freed_memory()
    try:
        app()
    except SaywhereError as error:
        err.print(f"error: {error}", markup=False, style="red")
        sys.exit(2)
    except OSError as error:
        if error.errno not in FULL:
            raise
        said = f"error: the disk is full: {error.filename or _full()} (free some room; no file is half-written)"
        err.print(said, markup=False, style="red")
        sys.exit(2)


def _full() -> str:
    """Where there is no room, if the system does not say it, as of what is open already: files of ours say it."""
    scratch = tempfile.gettempdir()
    return scratch if shutil.disk_usage(scratch).free < _LEAST_ROOM else "where standard output goes"
