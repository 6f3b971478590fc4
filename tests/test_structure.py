"""The shape of the code itself: which way imports point, what is exported, and that every test can fail."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import saywhere

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "saywhere"

# The figure in docs/design.md: each package may import only these others (and itself).
MAY_IMPORT = {
    "core": set(),
    "engine": {"core"},
    "formats": {"core"},
    "language": {"core", "assets"},
    "metrics": {"core"},
    "plots": {"core", "vision"},
    "world": {"core"},
    "store": {"core"},
    "models": {"core", "store", "assets", "vision", "language"},
    "explain": {"core", "vision", "language", "models", "metrics"},
    "index": {"core", "engine", "formats", "assets", "vision", "models"},
    "learn": {"core", "assets", "language", "models", "metrics", "explain"},
    "build": {
        "core",
        "engine",
        "formats",
        "world",
        "store",
        "vision",
        "language",
        "models",
        "learn",
        "explain",
        "plots",
    },
    "assets": {"core"},
    "vision": {"core", "store", "assets"},
    "reproduce": {
        "core",
        "engine",
        "formats",
        "world",
        "store",
        "vision",
        "language",
        "models",
        "learn",
        "explain",
        "metrics",
        "plots",
        "build",
    },
    "studio": {"core", "formats", "assets", "vision", "language", "models", "explain", "index", "metrics", "plots"},
    "cli": {
        "core",
        "engine",
        "formats",
        "world",
        "store",
        "assets",
        "vision",
        "language",
        "models",
        "learn",
        "explain",
        "metrics",
        "index",
        "plots",
        "build",
        "reproduce",
        "studio",
    },
}
EVERYONE_MAY_IMPORT = {"atomic", "limits", "provenance"}
# The writer that attends to what the eye saw learns on the eye's features, and TraceVLM's small body looks with it.
# No other family may import another.
MAY_JOIN = {"patchioner": {"eye"}, "tracevlm": {"eye"}}
CORE_LIBRARIES = {"numpy", "shapely"}


def _imports(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the package's full name"
            names.append(str(node.module))
    return names


def _packages() -> list[str]:
    return sorted(p.name for p in SOURCE.iterdir() if (p / "__init__.py").exists())


def test_every_package_is_in_the_figure() -> None:
    assert set(_packages()) <= set(MAY_IMPORT)


@pytest.mark.parametrize("package", _packages())
def test_imports_point_one_way(package: str) -> None:
    allowed = MAY_IMPORT[package] | {package} | EVERYONE_MAY_IMPORT
    wrong = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in (SOURCE / package).rglob("*.py")
        for name in _imports(path)
        if name.split(".")[0] == "saywhere" and len(name.split(".")) > 1 and name.split(".")[1] not in allowed
    ]
    assert wrong == []


def _families() -> list[str]:
    """The packages of models that hold one paper each."""
    return sorted({path.parent.name for path in (SOURCE / "models").glob("*/__init__.py")} - {"common"})


def test_there_are_families() -> None:
    assert {"mitr", "oscar", "patchioner", "updown"} <= set(_families())


@pytest.mark.parametrize("family", _families())
def test_no_family_of_models_imports_another(family: str) -> None:
    own = {family, *MAY_JOIN.get(family, ())}
    others = {f"saywhere.models.{name}" for name in _families() if name not in own}
    wrong = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in (SOURCE / "models" / family).rglob("*.py")
        for name in _imports(path)
        if ".".join(name.split(".")[:3]) in others
    ]
    assert wrong == []


def test_what_families_share_knows_none_of_them() -> None:
    families = {f"saywhere.models.{name}" for name in _families()}
    shared = [*(SOURCE / "models").glob("*.py"), *(SOURCE / "models" / "common").glob("*.py")]
    assert [path for path in shared for name in _imports(path) if ".".join(name.split(".")[:3]) in families] == []


@pytest.mark.parametrize("package", _packages())
def test_every_edge_of_the_figure_is_used(package: str) -> None:
    names = [name for path in (SOURCE / package).rglob("*.py") for name in _imports(path)]
    used = {name.split(".")[1] for name in names if name.startswith("saywhere.")}
    assert MAY_IMPORT[package] - used == set()


def test_the_name_of_a_class_has_one_meaning() -> None:
    names = Counter(
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1 and not name.startswith("_")} == set()
    # These had several meanings: not even a private class may take them again.
    for name in ("Agreement", "Answer", "Found", "Look", "Place", "Scene"):
        assert names[name] + names[f"_{name}"] <= 1


def test_the_core_stands_on_numpy_alone_but_for_lazy_geometry() -> None:
    for path in (SOURCE / "core").glob("*.py"):
        third_party = {name.split(".")[0] for name in _imports(path)} - set(sys.stdlib_module_names) - {"saywhere"}
        assert third_party <= CORE_LIBRARIES, f"{path.name}: {third_party}"
        at_top = {
            alias.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert "shapely" not in at_top, f"{path.name} imports shapely before it is needed"


@pytest.mark.parametrize("module", ["saywhere", *(f"saywhere.{name}" for name in _packages())])
def test_everything_exported_exists_and_is_listed_once(module: str) -> None:
    loaded = import_module(module)
    exported = list(getattr(loaded, "__all__", []))
    assert len(exported) == len(set(exported))
    assert all(getattr(loaded, name, None) is not None for name in exported)


def test_the_top_level_names_are_the_public_face() -> None:
    assert {"Trace", "Narrative", "Box", "Frame", "AttentionMap", "Utterance", "Word"} <= set(saywhere.__all__)
    assert set(dir(saywhere)) >= set(saywhere.__all__)


# 21 today; `make bench` has the seconds.
MOST_MODULES = 30


def _run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_saywhere_loads_nothing_heavy() -> None:
    heavy = ["torch", "scipy", "spacy", "matplotlib", "pyarrow", "pycocotools", "shapely", "PIL"]
    loaded = _run(f"import sys, saywhere; print([m for m in {heavy} if m in sys.modules])")
    assert loaded.strip() == "[]"


def test_importing_saywhere_loads_little_beside_numpy() -> None:
    code = "import sys, numpy; before = set(sys.modules); import saywhere; print(*sorted(set(sys.modules) - before))"
    loaded = _run(code).split()
    libraries = {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"numpy", "saywhere"}
    assert libraries == set()
    assert len(loaded) <= MOST_MODULES, loaded


# What `saywhere.load().look(photo).caption(region)` opens.
CAPTION_PATH = ("loading", "models.registry", "models.patchioner.seer", "models.eye.encoder", "vision.detector")
# May get smaller, not larger.
CAPTION_MODULES = 45


def test_a_caption_passes_few_of_our_modules() -> None:
    imports = ", ".join(f"saywhere.{name}" for name in CAPTION_PATH)
    loaded = _run(
        f"import sys, {imports}\n"
        "print(*[n for n, one in sys.modules.items() if n.startswith('saywhere.') and not hasattr(one, '__path__')])"
    ).split()
    assert len(loaded) == CAPTION_MODULES, loaded
    others = ("core.narrative", "core.alignment", "core.attention", "assets.wheel", "store", "vision.pixels")
    others += ("models.patchioner.answering", "models.patchioner.grounding", "models.eye.objective", "language.phrases")
    assert {f"saywhere.{name}" for name in others} & set(loaded) == set()


def _asserts(function: ast.FunctionDef) -> bool:
    """Whether a test has something that can fail: an assert, pytest.raises/fail, a numpy.testing check, or what
    Playwright expects of a page."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name == "expect" or name.split(".")[-1].startswith(("assert_", "raises", "fail", "warns")):
                return True
    return False


def _tests() -> list[tuple[Path, ast.FunctionDef]]:
    return [
        (path, node)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    ]


def test_no_test_is_without_an_assertion() -> None:
    silent = [f"{path.relative_to(ROOT)}::{test.name}" for path, test in _tests() if not _asserts(test)]
    assert silent == []


@pytest.mark.parametrize(
    ("body", "can_fail"),
    [("x = 1", False), ("assert True", False), ("assert x", True), ("np.testing.assert_allclose(a, b)", True)],
)
def test_the_check_for_assertions_tells_them_apart(body: str, can_fail: bool) -> None:
    function = ast.parse(f"def test_it():\n    {body}").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert _asserts(function) is can_fail


def test_nothing_pickled_is_ever_loaded() -> None:
    for path in SOURCE.rglob("*.py"):
        assert not {"pickle", "dill", "joblib", "shelve"} & {name.split(".")[0] for name in _imports(path)}, path
        assert "allow_pickle=True" not in path.read_text(encoding="utf-8"), path
