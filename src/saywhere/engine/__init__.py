"""Map a stage over shards: in this process, in several, with the same results in the same order."""

from saywhere.engine.mapping import Engine, FailedShard, Function, Options, ShardError, Stage, results_of
from saywhere.engine.processes import OneProcess, SeveralProcesses, open_engine

__all__ = [
    "Engine",
    "FailedShard",
    "Function",
    "OneProcess",
    "Options",
    "SeveralProcesses",
    "ShardError",
    "Stage",
    "open_engine",
    "results_of",
]
