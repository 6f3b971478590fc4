"""Help texts: every command and option has one, and each is a sentence. Options of one name mean one thing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from saywhere.cli.app import app

# Words of the workshop, which a stranger does not know from reading the page.
DIALECT = ("ways to go on", "say it", "may come again", "not made again", "gone on from", "are said and", "it knows")


def commands(command: Any, name: str = "saywhere") -> Iterator[tuple[str, Any]]:
    yield name, command
    for one, under in getattr(command, "commands", {}).items():
        yield from commands(under, f"{name} {one}")


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_text_is_a_sentence(name: str) -> None:
    command = COMMANDS[name]
    texts = {name: command.help} | {
        f"{name} {parameter.name}": getattr(parameter, "help", None)
        for parameter in command.params
        if "--help" not in parameter.opts
    }
    for about, text in texts.items():
        assert text, f"{about} has no help"
        first = text.split("\n\n")[0].strip()
        assert first[-1] in ".)…!?" or text.endswith("…"), f"{about}: {first}"
        assert not first[0].islower() or first.split()[0] in ("model.safetensors",), f"{about}: {first}"
        assert not [words for words in DIALECT if words in first.lower()], f"{about}: {first}"


def test_out_is_where_a_result_goes_and_png_is_a_picture_of_it() -> None:
    helps: dict[str, dict[str, str]] = defaultdict(dict)
    for name, command in COMMANDS.items():
        for parameter in command.params:
            for option in {"--out", "--png"} & set(parameter.opts):
                helps[option][name] = str(getattr(parameter, "help", ""))
    assert len(helps["--png"]) >= 6
    assert all(text.startswith("Also draw") for text in helps["--png"].values()), helps["--png"]
    written = ("File", "Folder", "PNG file to write", "Also write", "The memory bank to write", "The page to write")
    assert all(text.startswith(written) for text in helps["--out"].values()), helps["--out"]
