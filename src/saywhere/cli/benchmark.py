"""`saywhere build trace-benchmark`: sentences of narratives and the traces under them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.cli.console import err, out, plain_table
from saywhere.cli.data import File, FormatOption, format_of, read
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.narrative import Narrative
from saywhere.formats.record import InvalidRecord

if TYPE_CHECKING:
    from saywhere.build.trace_benchmark import ModelRewriter


def trace_benchmark(
    source: File,
    output: Annotated[Path, typer.Option("--out", "-o", help="File to write: .jsonl, or .jsonl.gz to compress it.")],
    format: FormatOption = None,  # noqa: A002 - the option's name
    llm: Annotated[
        str | None,
        typer.Option(
            help="Rewrite sentences with the OpenAI-compatible endpoint at this address, such as http://127.0.0.1:8000/v1."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The endpoint's name of the model.")] = None,
    key_variable: Annotated[
        str, typer.Option(help="Name of the environment variable with the endpoint's key.")
    ] = "SAYWHERE_LLM_KEY",
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many requests to send at a time.")] = 4,
    trim: Annotated[
        float, typer.Option(help="Share of a sentence's duration to cut off its trace at each end.")
    ] = 0.15,
) -> None:
    """Make a trace-captioning benchmark of narratives: one caption and its part of the trace for each sentence.

    The source may be a file of narratives in any format, or the folder of a world. Sentences are rewritten as captions
    by rule, or by a language model, whose answers are kept beside the output so that a stopped run goes on.
    """
    import msgspec

    from saywhere.atomic import write_atomic
    from saywhere.build.trace_benchmark import build_trace_benchmark
    from saywhere.cli.provenance import provenance

    if (llm is None) != (model is None):
        raise InvalidValue("--llm and --model", "belong together", "give both or neither")
    told = _narratives_file(source)
    rewriter = _rewriter(llm, model, key_variable, workers, output) if llm and model else None
    bad: list[InvalidRecord] = []
    counts = build_trace_benchmark(_narratives(told, format, bad), output, rewriter, trim=trim)
    about = output.with_name(f"{output.name}.about.json")
    made = {"rewritten_by": model or "rules", "trim": trim, "unreadable records": len(bad), **counts.as_json()}
    with write_atomic(about) as file:
        file.write(msgspec.json.format(msgspec.json.encode({**made, "made_by": provenance([told])})))
    table = plain_table()
    table.add_row("sentences", f"{counts.sentences:,}")
    table.add_row("samples", f"{counts.samples:,} of {len(counts.images):,} images")
    for reason, count in counts.dropped.most_common():
        table.add_row(f"dropped: {reason}", f"{count:,}")
    if bad:
        table.add_row("unreadable records", f"{len(bad):,}")
    out.print(table)
    out.print(f"{output}, {about.name}", markup=False)
    if not counts.samples:
        err.print("no sentence became a sample", markup=False, style="yellow")
        raise typer.Exit(1)


def _narratives(path: Path, name: str | None, bad: list[InvalidRecord]) -> Iterator[Narrative]:
    """The narratives of a file; records that cannot be read are said and collected."""
    kind = format_of(path, name)
    if kind.holds != "narratives":
        raise InvalidFile(path, f"holds {kind.holds} ({kind.title}), and narratives are needed here")
    for value in read(path, kind.name):
        if isinstance(value, InvalidRecord):
            err.print(f"skipped {value}", markup=False, style="yellow")
            bad.append(value)
        else:
            yield value


def _narratives_file(source: Path) -> Path:
    if not source.is_dir():
        return source
    inside = source / "narratives.jsonl"
    if not inside.is_file():
        raise InvalidFile(source, "is a folder without narratives.jsonl", "name a file, or the folder of a world")
    return inside


def _rewriter(llm: str, model: str, key_variable: str, workers: int, output: Path) -> ModelRewriter:
    from saywhere.build.llm import AnswerCache, Chat, Endpoint
    from saywhere.build.trace_benchmark import ModelRewriter

    cache = AnswerCache(output.with_name(f"{output.name}.answers"))
    return ModelRewriter(Chat(Endpoint(llm, model, key_variable), cache), workers)
