"""Which tasks there are, by name. A task's module is imported when a recipe asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.learn.recipe import Recipe, read_recipe
from saywhere.learn.tables import checked
from saywhere.learn.task import Task, TaskClass

_TASKS: dict[str, str] = {
    "answerer": "saywhere.models.answerer.task:AnswererTask",
    "eye": "saywhere.models.eye.task:EyeTask",
    "hint-caption": "saywhere.learn.hint_task:HintCaptionTask",
    "hint-vqa": "saywhere.learn.hint_task:HintVqaTask",
    "mitr": "saywhere.models.mitr.task:MitrTask",
    "oscar": "saywhere.models.oscar.task:OscarTask",
    "patchioner-alignment": "saywhere.models.patchioner.tasks:AlignmentTask",
    "patchioner-decoder": "saywhere.models.patchioner.tasks:DecoderTask",
    "patchioner-matching": "saywhere.models.patchioner.matching_task:MatchingTask",
    "patchioner-photo-reward": "saywhere.learn.photo_reward:PhotoRewardTask",
    "patchioner-photo-writer": "saywhere.models.patchioner.photo_writing:PhotoWriterTask",
    "patchioner-reward": "saywhere.learn.reward:RewardTask",
    "tracevlm": "saywhere.models.tracevlm.task:TraceVlmTask",
    "tracevlm-small": "saywhere.models.tracevlm.small_task:SmallTask",
    "updown-caption": "saywhere.models.updown.task:UpDnCaptionTask",
    "updown-vqa": "saywhere.models.updown.task:UpDnVqaTask",
}

_METHODS = sorted(name for name in vars(Task) if not name.startswith("_"))


def register(name: str, where: str) -> None:
    """Make a task known under a name. where: "package.module:Class", the class as `TaskClass` describes it."""
    module, colon, attribute = where.partition(":")
    if not (name and module and colon and attribute.isidentifier()):
        raise InvalidValue(f"the task {name!r}", f"{where!r} is not of the form 'package.module:Class'")
    if _TASKS.get(name, where) != where:
        raise InvalidValue(f"the task {name!r}", f"is already registered as {_TASKS[name]}, not {where}")
    _TASKS[name] = where


def known_tasks() -> tuple[str, ...]:
    """The names a recipe may use, in order."""
    return tuple(sorted(_TASKS))


def task_class(name: str) -> TaskClass:
    """The class of the task of this name."""
    if name not in _TASKS:
        raise UnknownName("task", name, _TASKS)
    module, _, attribute = _TASKS[name].partition(":")
    return cast(TaskClass, getattr(import_module(module), attribute))


def check_sections(recipe: Recipe, source: str) -> tuple[Any, Any]:
    """The recipe's [model] and [data] as the task's own Structs. source: the file to name in an error."""
    kind = task_class(recipe.task)
    return (
        checked(recipe.model, kind.model_section, source=source, section="model"),
        checked(recipe.data, kind.data_section, source=source, section="data"),
    )


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe from its TOML file with `key.path=value` put in, checked whole: the trainer's tables and the task's."""
    recipe = read_recipe(path, overrides)
    check_sections(recipe, str(path))
    return recipe


def make_task(recipe: Recipe) -> Task:
    """The recipe's task with its data."""
    model, data = check_sections(recipe, f"recipe {recipe.name!r}")
    task = task_class(recipe.task)(model, data)
    absent = [name for name in _METHODS if not callable(getattr(task, name, None))]
    if absent:
        raise InvalidValue(
            f"the task {recipe.task!r}", f"lacks {', '.join(absent)}, which saywhere.learn.Task asks for"
        )
    return task
