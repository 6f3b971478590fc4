"""Where many photos are worked on: options that commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.core.errors import InvalidValue, UnknownName

if TYPE_CHECKING:
    from saywhere.engine import Engine

EngineName = Annotated[str, typer.Option("--engine", help="Where to work: local, or ray for a Ray cluster.")]
Workers = Annotated[
    int,
    typer.Option(min=0, help="Processes, each with its own model; 0: this process, or as many as Ray likes."),
]
RayAddress = Annotated[
    str, typer.Option("--address", help="Ray cluster to use, such as auto or ray://head:10001; a local one by default.")
]

PhotoTimeout = Annotated[
    float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="Skip a photo that takes longer to read.")
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Try photos again that could not be read, for reasons that pass.")
]


def chosen_engine(name: str, workers: int, address: str) -> Engine:
    """The engine of this name."""
    from saywhere.engine import open_engine

    if name == "local":
        if address:
            raise InvalidValue("--address", f"{address} is a Ray cluster's", "add --engine ray")
        return open_engine(workers)
    if name != "ray":
        raise UnknownName("engine", name, ("local", "ray"))
    from saywhere.engine.ray_data import RayData

    return RayData(address, workers)
