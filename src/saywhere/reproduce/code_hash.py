"""Which code made a report, file by file, so that one can tell when it changed."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import saywhere

_PACKAGE, _INIT = "saywhere", "__init__.py"
_ROOT = Path(saywhere.__file__).parent
# What only shows results, or starts a run, has no part in the numbers.
_APART = ("plots", "cli", "studio", "reproduce._", "reproduce.report", "reproduce.code_hash", "reproduce.pool")
# What finds a module by a name that somebody gave. A run says itself what it found so: see `Experiment.opened`.
_REGISTRIES = ("formats.registry", "learn.registry", "models.registry")
_TRIES = 3


def code_hashes(module: str, unused: Collection[str] = (), opened: Iterable[str] = ()) -> dict[str, str]:
    """Of a module and every module of saywhere that it imports, itself or through others: path in the package → hash.

    Comments, docstrings and empty lines do not count. Left out are code that only draws or is only a command, packages
    that only pass on the names of others, and registries; what is imported from a package is where it is defined.
    unused: modules that are imported but had no part in this run; neither have those that they alone import. opened:
    modules that were found by name.

    >>> "reproduce/decisions.py" in code_hashes("saywhere.reproduce.claims")
    True
    """
    found: dict[str, str] = {}
    waiting, seen = [module, *opened], {_PACKAGE, *unused}
    while waiting:
        name = waiting.pop()
        if name in seen or name.split(".")[0] != _PACKAGE or _is_of(name, _APART):
            continue
        seen.add(name)
        path = _file_of(name)
        source = path.read_text(encoding="utf-8")
        passes_on, imported = _read(source, path.name == _INIT)
        waiting += imported
        if not passes_on and not _is_of(name, _REGISTRIES):
            found[path.relative_to(_ROOT).as_posix()] = _hash(source)
    return dict(sorted(found.items()))


def changed_files(noted: Mapping[str, str], root: Path = _ROOT) -> list[str]:
    """Which of these files are no longer as noted, or are gone. root: the folder of the package."""
    return [name for name, was in noted.items() if _hash_of(root / name) != was]


def _hash_of(path: Path) -> str | None:
    return _hash(path.read_text(encoding="utf-8")) if path.is_file() else None


@lru_cache(maxsize=1024)
def _hash(source: str) -> str:
    return hashlib.sha256(_bare(source).encode()).hexdigest()[:12]


def _file_of(module: str) -> Path:
    parts = module.split(".")[1:]
    folder = _ROOT.joinpath(*parts)
    return folder / _INIT if folder.is_dir() else folder.with_suffix(".py")


def _is_of(module: str, some: tuple[str, ...]) -> bool:
    return module.removeprefix(f"{_PACKAGE}.").startswith(some)


@lru_cache(maxsize=1024)
def _read(source: str, is_package: bool) -> tuple[bool, tuple[str, ...]]:
    """Whether a file only passes on the names of others, and the modules that it imports. A package that passes on some
    names when they are first asked for imports those for types, too."""
    tree = _tree(source)
    passes_on = is_package and all(_is_passing_on(node) for node in tree.body)
    return passes_on, tuple(dict.fromkeys((*_imported(tree, for_types=is_package), *_called(tree))))


def _is_passing_on(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    return isinstance(node, ast.Import | ast.ImportFrom) or _is_for_types(node) or isinstance(node, ast.Expr)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _imported(tree: ast.AST, *, for_types: bool) -> Iterator[str]:
    """Modules of saywhere that a file imports when it runs. for_types: those that it imports for types alone, too."""
    for node in ast.iter_child_nodes(tree):
        if _is_for_types(node) and not for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == _PACKAGE)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == _PACKAGE:
            yield from (_defined(node.module or "", alias.name) for alias in node.names)
        else:
            yield from _imported(node, for_types=for_types)


def _defined(module: str, name: str) -> str:
    """The module where a name is defined that is imported from a module, which may have it from another one."""
    if _is_module(f"{module}.{name}"):
        return f"{module}.{name}"
    theirs = _passed_on(module).get(name)
    return module if theirs is None else _defined(*theirs)


@lru_cache(maxsize=256)
def _passed_on(module: str) -> dict[str, tuple[str, str]]:
    """The names that a package passes on → where it has them from, and what they are called there."""
    path = _file_of(module)
    if path.name != _INIT:
        return {}
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for part in _tree(path.read_text(encoding="utf-8")).body
        for node in (part.body if isinstance(part, ast.If) else [part])
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == _PACKAGE
        for alias in node.names
    }


def _called(tree: ast.Module) -> Iterator[str]:
    """Modules behind `saywhere.name`, of the names that a file uses: where they are defined, or what the package's own
    function of this name imports, such as every model for `load`."""
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == _PACKAGE
    }
    used |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == _PACKAGE
        for alias in node.names
    }
    for node in _tree((_ROOT / _INIT).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name in used:
            yield from _imported(node, for_types=False)
    yield from (_defined(_PACKAGE, name) for name in used)


def _is_module(name: str) -> bool:
    return _file_of(name).is_file()


def _bare(source: str) -> str:
    """The lines of a file without comments, docstrings and empty lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for row in _docstring_rows(node):
                lines[row] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _tree(source: str) -> ast.Module:
    """Parsed. Python 3.11 counts depth in one place for all threads, so that it may fail while another one parses, or
    the garbage collector does (cpython issue 106905): then once more."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(SystemError):
            return ast.parse(source)
    return ast.parse(source)


def _docstring_rows(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    if ast.get_docstring(node, clean=False) is None:
        return range(0)
    first = node.body[0]
    return range(first.lineno - 1, first.end_lineno or first.lineno)
