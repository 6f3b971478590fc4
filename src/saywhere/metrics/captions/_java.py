"""Finding Java and the Java tools of the COCO evaluation, and saying plainly what is missing."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from saywhere.core.errors import MissingDependency, SaywhereError

_GET_JAVA = "install a Java runtime (for example the package default-jre-headless) so that `java` is on the PATH"


class ToolFailed(SaywhereError, RuntimeError):
    """An outside program ended, fell silent or answered nonsense. `output` is the end of what it complained."""

    def __init__(self, tool: str, reason: str, output: str = "") -> None:
        self.tool, self.reason, self.output = tool, reason, output
        super().__init__(f"{tool} {reason}" + (f". It said: {output}" if output else ""))


def find_java(needed_for: str) -> str:
    """Path of the `java` program: that of JAVA_HOME if it is set, else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise MissingDependency("a Java runtime", needed_for, _GET_JAVA)
    return found


def java_major(java: str) -> int:
    """Major version of a Java program: 8, 11, 17 …"""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolFailed(java, "does not run", str(error)) from error
    match = re.search(r'version "(?:1\.)?(\d+)', answer)
    if match is None:
        raise ToolFailed(java, "did not tell its version", answer.strip()[-200:])
    return int(match[1])


def find_tool_folder(name: str, needed_for: str) -> Path:
    """The folder of one tool inside the installed package pycocoevalcap, which carries the Java programs."""
    spec = importlib.util.find_spec("pycocoevalcap")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependency("the package 'pycocoevalcap'", needed_for, "pip install 'saywhere[java]'")
    return Path(next(iter(spec.submodule_search_locations))) / name


def require_files(folder: Path, names: list[str], needed_for: str, how_to_get: str) -> None:
    """Raise unless all files are in the folder."""
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise MissingDependency(f"{' and '.join(missing)} in {folder}", needed_for, how_to_get)
