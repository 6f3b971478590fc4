"""Which code made a report, file by file, so that one can tell when it changed."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import tokenize
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import saywhere

_ROOT = Path(saywhere.__file__).parent
# What only shows results, or starts a run, has no part in the numbers.
_APART = ("plots", "cli", "studio", "reproduce._", "reproduce.report", "reproduce.code_hash")
_TRIES = 3


def code_hashes(module: str, unused: Collection[str] = ()) -> dict[str, str]:
    """Of a module and every module of saywhere that it imports, itself or through others: path in the package → hash.

    Comments, docstrings and empty lines do not count. Code that only draws or is only a command is left out. unused:
    modules that are imported but had no part in this run; neither have those that they alone import.

    >>> "reproduce/decisions.py" in code_hashes("saywhere.reproduce.claims")
    True
    """
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        path = _file_of(waiting.pop())
        name = path.relative_to(_ROOT).as_posix()
        if name not in found:
            source = path.read_text(encoding="utf-8")
            found[name] = _hash(source)
            tree = _tree(source)
            if path == _ROOT / "__init__.py":
                # What its functions import, such as every model for `load`, is used by those who call them.
                tree = _without_functions(tree)
            waiting += [one for one in (*_imported(tree), *_called(tree)) if not _is_apart(one) and one not in unused]
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
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def _is_apart(module: str) -> bool:
    return module.removeprefix("saywhere.").startswith(_APART)


def _imported(tree: ast.AST) -> Iterator[str]:
    """Modules of saywhere that a file imports when it runs; what is imported for types alone has no part."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("saywhere"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("saywhere"):
            base = node.module or ""
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names if _is_module(f"{base}.{alias.name}"))
        else:
            yield from _imported(node)


def _without_functions(tree: ast.Module) -> ast.Module:
    kept = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
    return ast.Module(kept, tree.type_ignores)


def _called(tree: ast.Module) -> Iterator[str]:
    """Modules behind `saywhere.name`, of the names that a file uses: those that its function of this name imports."""
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "saywhere"
    }
    used |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "saywhere"
        for alias in node.names
    }
    for node in _tree((_ROOT / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name in used:
            yield from _imported(node)
    yield from (f"saywhere.{name}" for name in used if _is_module(f"saywhere.{name}"))


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
