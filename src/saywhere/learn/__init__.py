"""One trainer for all models: recipes, a task's protocol, checkpoints that can be trusted."""

from saywhere.learn.checkpoint import verify_checkpoint
from saywhere.learn.errors import TrainingDiverged
from saywhere.learn.recipe import Recipe
from saywhere.learn.records import Best, Event, Note, Saved, StepDone, TrainResult, Validated, read_log
from saywhere.learn.registry import known_tasks, load_recipe, make_task, register
from saywhere.learn.run import train, train_to_end
from saywhere.learn.task import Items, ItemStream, SharedValidation, Task, TaskClass
from saywhere.learn.trained import TrainedRun, evaluate, export, find_checkpoint, load_run

__all__ = [
    "Best",
    "Event",
    "ItemStream",
    "Items",
    "Note",
    "Recipe",
    "Saved",
    "SharedValidation",
    "StepDone",
    "Task",
    "TaskClass",
    "TrainResult",
    "TrainedRun",
    "TrainingDiverged",
    "Validated",
    "evaluate",
    "export",
    "find_checkpoint",
    "known_tasks",
    "load_recipe",
    "load_run",
    "make_task",
    "read_log",
    "register",
    "train",
    "train_to_end",
    "verify_checkpoint",
]
