"""What every command needs to talk to a person: results on standard output, progress and errors on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.table import Table

from saywhere.core.types import Progress

if TYPE_CHECKING:
    from saywhere.reproduce.claims import Claim
    from saywhere.reproduce.results import Departure

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

T = TypeVar("T")
MB = 1_000_000
_QUIET_S = 10.0
_SHOWN = 20
_SIGNS = {"held": "✓", "not held": "✗"}


def plain_table() -> Table:
    """Names and numbers in two columns that never break a line."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for _ in range(2):
        table.add_column(no_wrap=True)
    return table


def tell_plan(departures: Iterable[Departure], settings: Mapping[str, Any]) -> None:
    """What an experiment is about to do: first what departs from the paper, then every setting."""
    import msgspec

    from saywhere.reproduce._cells import settings_rows

    for one in departures:
        out.print(f"not as in the paper: {one.setting}: {one.here} (the paper: {one.paper})", markup=False)
    for name, value in settings_rows(msgspec.to_builtins(settings, enc_hook=str)):
        out.print(f"{name}: {value}", markup=False)


def tell_claims(claims: Iterable[Claim]) -> None:
    """A line for each claim of a paper, with its verdict and the difference that it comes from."""
    from saywhere.reproduce._cells import could_show, difference

    for claim in claims:
        mean, interval = difference(claim)
        sign = _SIGNS.get(claim.verdict, "?")
        power = f"; could have shown: {could_show(claim)}" if claim.verdict == "undecided" else ""
        found = f"{claim.measure} {mean}, 95 %: {interval}{power}"
        out.print(f"{sign} {claim.text}: {claim.verdict} ({found})", markup=False)


def tell_left_out(lines: Sequence[object]) -> None:
    """Report what was left out: the first of it one by one, and how much more there is."""
    for line in lines[:_SHOWN]:
        err.print(f"left out {line}", markup=False, style="yellow")
    if len(lines) > _SHOWN:
        err.print(f"left out {len(lines) - _SHOWN:,} more", style="yellow")


def counted(values: Iterable[T], doing: str, total: int | None = None) -> Iterator[T]:
    """Pass values on and show how many there were: a live line on a terminal, else a line every ten seconds."""
    return _live(values, doing, total) if err.is_terminal else _lines(values, doing)


def _live(values: Iterable[T], doing: str, total: int | None) -> Iterator[T]:
    columns = [SpinnerColumn(), TextColumn("{task.description}")]
    with RichProgress(
        *columns, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=err, transient=True
    ) as bar:
        yield from bar.track(values, total=total, description=doing)


def _lines(values: Iterable[T], doing: str) -> Iterator[T]:
    said = time.monotonic()
    for count, value in enumerate(values):
        yield value
        if time.monotonic() - said > _QUIET_S:
            said = time.monotonic()
            err.print(f"{doing}: {count + 1:,} so far", markup=False)


@contextmanager
def stages() -> Iterator[Progress]:
    """A job of several stages: call what this gives with (what is done, how much, out of how much)."""
    if not err.is_terminal:
        yield _stage_lines()
        return
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    with RichProgress(*columns, console=err) as bar:
        known: dict[str, TaskID] = {}

        def show(doing: str, done: int, total: int) -> None:
            if doing not in known:
                known[doing] = bar.add_task(doing)
            bar.update(known[doing], completed=done, total=total)

        yield show


def _stage_lines() -> Progress:
    now_due = _every_ten_seconds()

    def show(doing: str, done: int, total: int) -> None:
        if now_due(doing, done, total):
            err.print(f"{doing}: {done:,} of {total:,}", markup=False)

    return show


def _every_ten_seconds() -> Callable[[str, int, int], bool]:
    """Whether to say how far something is: at first, at the end, and now and then."""
    said: dict[str, float] = {}

    def is_due(doing: str, done: int, total: int) -> bool:
        now = time.monotonic()
        if done >= total > 0 or now - said.get(doing, -_QUIET_S) >= _QUIET_S:
            said[doing] = now
            return True
        return False

    return is_due


def rated(show: Progress) -> Progress:
    """The same with how many there are a second and how long it will still take, where progress is told in lines."""
    if err.is_terminal:
        return show
    began: dict[str, tuple[float, int]] = {}

    def tell(doing: str, done: int, total: int) -> None:
        start_s, first = began.setdefault(doing, (time.monotonic(), done))
        passed_s = time.monotonic() - start_s
        if done <= first or not passed_s:
            return
        rate = (done - first) / passed_s
        left = f", {_lasting(max(total - done, 0) / rate)} left" if total else ""
        if now_due(doing, done, total):
            err.print(f"{doing}: {done:,}{f' of {total:,}' if total else ''}, {rate:.1f} a second{left}", markup=False)

    now_due = _every_ten_seconds()
    return tell


def _lasting(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def in_megabytes(show: Progress) -> Progress:
    """Bytes as megabytes, counted up at the end, so that a part of one is never nothing."""

    def tell(doing: str, done: int, total: int) -> None:
        show(f"{doing} (MB)", done // MB if done < total else -(-total // MB), -(-total // MB))

    return tell
