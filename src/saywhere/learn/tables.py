"""TOML tables against the Structs that describe them: every complaint names the file, the section and the key."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue

S = TypeVar("S", bound=msgspec.Struct)
_PLACE = re.compile(r"^(?P<reason>.*?) - at `\$\.?(?P<key>.*?)`$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(?P<field>.*?)`$")


def checked(table: Mapping[str, Any], kind: type[S], *, source: str, section: str = "") -> S:
    """A table as a Struct. Unknown keys, wrong types, values out of range and missing input files raise InvalidFile.

    section: where the table stands in the file ("train"), empty for the whole file.
    """
    for reason, hint in _name_faults(table, kind, section):
        raise InvalidFile(source, reason, hint)
    try:
        value = msgspec.convert(table, kind, dec_hook=_from_text)
    except msgspec.ValidationError as error:
        raise InvalidFile(source, _complaint(str(error), section)) from error
    for key, path in _paths(value, section):
        if not path.exists():
            hint = "" if path.is_absolute() else f"looked in {Path.cwd()}"
            raise InvalidFile(source, f"{_place(key)}: no file or folder {str(path)!r}", hint)
    return value


def as_table(value: msgspec.Struct) -> dict[str, Any]:
    """A Struct as plain tables that `checked` turns back into it."""
    table: dict[str, Any] = msgspec.to_builtins(value, enc_hook=str)
    return table


def override(table: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """The table with `key.path=value` put in. A value is TOML if it reads as such, else the text itself."""
    result = _copy(table)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise InvalidValue(f"the override {assignment!r}", "is not of the form key.path=value", "train.lr=0.001")
        inner = result
        for key in keys[:-1]:
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise InvalidValue(f"the override {assignment!r}", f"{key} is a value, not a section")
        inner[keys[-1]] = _toml_value(text.strip())
    return result


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Dotted keys whose values differ, with the old and the new one; None stands for absent."""
    found: dict[str, tuple[Any, Any]] = {}
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found |= differences(before, after, f"{prefix}{key}.")
        elif before != after:
            found[prefix + key] = (before, after)
    return found


def _name_faults(table: Mapping[str, Any], kind: type[msgspec.Struct], section: str) -> Iterator[tuple[str, str]]:
    """Keys and choices that are not known, each with a hint, in tables described by one Struct (not in lists)."""
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in table.items():
        dotted = f"{section}.{key}" if section else key
        if key not in fields:
            if key != kind.__struct_config__.tag_field:
                yield f"{_place(dotted)} is not a known key", _nearest(key, fields)
        elif isinstance(value, Mapping):
            yield from _table_faults(value, _structs_in(fields[key]), dotted)
        elif get_origin(fields[key]) is Literal and value not in get_args(fields[key]):
            yield f"{_place(dotted)} is {value!r}", _nearest(str(value), get_args(fields[key]))


def _table_faults(
    table: Mapping[str, Any], structs: Mapping[Any, type[msgspec.Struct]], section: str
) -> Iterator[tuple[str, str]]:
    """The same for a table that is one of several Structs, told apart by a tag."""
    if len(structs) == 1:
        yield from _name_faults(table, next(iter(structs.values())), section)
    elif structs:
        tag_field = str(next(iter(structs.values())).__struct_config__.tag_field)
        if isinstance(table.get(tag_field), str) and table[tag_field] in structs:
            yield from _name_faults(table, structs[table[tag_field]], section)
        elif tag_field in table:
            tag = table[tag_field]
            yield f"{_place(f'{section}.{tag_field}')} is {tag!r}", _nearest(str(tag), structs)


def _structs_in(kind: Any) -> dict[Any, type[msgspec.Struct]]:
    """The Structs that a field may hold, by their tags."""
    choices = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    structs = [choice for choice in choices if isinstance(choice, type) and issubclass(choice, msgspec.Struct)]
    return {struct.__struct_config__.tag: struct for struct in structs}


def _nearest(name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {nearest[0]!r}?" if nearest else f"known here: {', '.join(sorted(known)) or 'nothing'}"


def _from_text(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str) and value:
        return Path(value)
    raise ValueError(f"Expected the path of a file or folder, got {value!r}")


def _paths(value: Any, key: str) -> Iterator[tuple[str, Path]]:
    if isinstance(value, Path):
        yield key, value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _paths(getattr(value, name), f"{key}.{name}" if key else name)
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _paths(inner, f"{key}[{number}]")


def _complaint(message: str, section: str) -> str:
    """msgspec's message with our way of naming the place."""
    placed = _PLACE.match(message)
    reason, key = (placed["reason"], placed["key"]) if placed else (message, "")
    missing = _MISSING.match(reason)
    if missing:
        key, reason = f"{key}.{missing['field']}" if key else missing["field"], "is missing"
    dotted = ".".join(part for part in (section, key) if part)
    separator = " " if missing else ": "
    return f"{_place(dotted)}{separator}{reason}" if dotted else reason


def _place(dotted: str) -> str:
    section, _, key = dotted.partition(".")
    return f"[{section}] {key}" if key else section


def _toml_value(text: str) -> Any:
    try:
        document = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return document["value"] if document.keys() == {"value"} else text


def _copy(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in table.items()}
