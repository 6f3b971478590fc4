"""What `make docs` adds to MkDocs: docstrings as Markdown, and a page of all commands made of their help texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from griffe import Extension
from mkdocs.structure.files import File, Files

# "points: (n, 3) float64 …" at the start of a line says what a field or a parameter is.
_FIELD = re.compile(r"^((?:[a-z_][\w.]*, )*[a-z_][\w.]*): (?=\S)")


class Docstrings(Extension):
    """Makes a list of what is said of fields and parameters, and code blocks of examples."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """A docstring of ours as Markdown."""
    return "\n\n".join(_block(block) for block in text.strip().split("\n\n"))


def _block(block: str) -> str:
    if block.startswith(">>> "):
        return f"```pycon\n{block}\n```"
    lines = block.splitlines()
    if not _FIELD.match(lines[0]):
        return block
    return "\n".join(_FIELD.sub(r"- **\1**: ", line) if _FIELD.match(line) else f"  {line.strip()}" for line in lines)


def on_files(files: Files, config: Any) -> Files:
    """Add reference/cli.md."""
    files.append(File.generated(config, "reference/cli.md", content="\n".join(_commands())))
    return files


def _commands() -> Iterator[str]:
    import typer

    from saywhere.cli.app import app

    yield "# Command line\n"
    yield from _command(typer.main.get_command(app), "saywhere")


def _command(command: Any, name: str) -> Iterator[str]:
    yield f"## `{name}`\n\n{command.help}\n"
    if under := getattr(command, "commands", None):
        for one, inner in under.items():
            yield from _command(inner, f"{name} {one}")
        return
    rows = [row for parameter in command.params if (row := _parameter(parameter))]
    if rows:
        yield "| option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _parameter(parameter: Any) -> str:
    if "--help" in parameter.opts:
        return ""
    value = f" {parameter.metavar}" if parameter.metavar else ""
    names = ", ".join(f"`{name}{value}`" for name in parameter.opts if name.startswith("-"))
    about = parameter.help or ""
    default = parameter.default
    if default not in (None, False, "", ()) and not callable(default) and not parameter.required:
        about += f" Default: `{default}`."
    return f"| {names or f'`{parameter.name.upper()}`'} | {about.replace('|', '&#124;')} |"
