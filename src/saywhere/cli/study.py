"""`saywhere study`: people compare two models' explanations, and what they said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.cli.console import err, out
from saywhere.cli.studio import Browser, Host, Names, Port, TokenFile, bound, page_address, read_token, run
from saywhere.core.errors import require

if TYPE_CHECKING:
    from saywhere.studio.study_summary import Participant, Preference, Share, SignTest, StudySummary

app = typer.Typer(
    help="Let people compare the explanations of two models.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Folder = Annotated[Path, typer.Argument(help="Folder of the study: study.json, photos and maps.", metavar="FOLDER")]


@app.command()
def serve(
    folder: Folder,
    port: Port = 8765,
    host: Host = "127.0.0.1",
    token_file: TokenFile = None,
    name: Names = None,
    browser: Browser = True,
) -> None:
    """Serve the study in the browser, without a network. Each person types a code; answers are saved at once."""
    for package in ("fastapi", "uvicorn", "sqlalchemy"):
        require(package, needed_for="a study", extra="studio")
    from saywhere.studio.app import create_study_app
    from saywhere.studio.settings import StudioSettings

    settings = StudioSettings(folder, host, port, read_token(token_file), tuple(name or ()), study=folder)
    with bound(settings) as listening:
        settings = replace(settings, port=listening.getsockname()[1])
        server, address = create_study_app(settings), page_address(settings)
        out.print(f"saywhere study: {address}", markup=False)
        err.print(f"Answers are kept in {folder}. Ctrl-C ends the study.", markup=False)
        run(server, listening, settings.limits, address if browser else None)


@app.command()
def summary(folder: Folder) -> None:
    """Write results.csv and summary.json into the folder, and print the summary."""
    require("sqlalchemy", needed_for="what people said", extra="studio")
    from saywhere.studio.study_summary import CSV, SUMMARY, write_results

    found = write_results(folder)
    _print(found)
    out.print(f"{folder / CSV}, {folder / SUMMARY}: written", markup=False)
    for reason in found.passed_over:
        err.print(f"passed over {reason}", markup=False)


def _print(found: StudySummary) -> None:
    a, b = found.a.model, found.b.model
    out.print(found.title, markup=False, style="bold")
    finished = sum(one.finished for one in found.participants)
    alpha = "none" if found.agreement.alpha is None else f"{found.agreement.alpha:.2f}"
    rows = [
        ("participants", f"{len(found.participants):,}, of whom {finished:,} finished"),
        ("ratings", f"{found.ratings:,} of {found.rated_items:,} of {found.items:,} items"),
        *((f"{one.model} preferred", _preferred(one)) for one in (found.a, found.b)),
        ("equal", _share(found.equal)),
        (f"{b} where not equal", _share(found.preferring_b)),
        ("sign test over ratings", _test(found.over_ratings, a, b)),
        ("sign test over participants", _test(found.over_participants, a, b)),
        ("sign test over items", _test(found.over_items, a, b)),
        ("left preferred", f"{_share(found.sides.left)}; p = {_p(found.sides.p)}"),
        (f"{a} on the left", _share(found.sides.a_was_left)),
        ("two people agree", _share(found.agreement.same)),
        ("two people disagree", _share(found.agreement.opposite)),
        ("Krippendorff's alpha", f"{alpha}, of {found.agreement.items:,} items that several people rated"),
        *((one.code, _person(one, a, b)) for one in found.participants),
    ]
    # A table of rich would cut long lines to the width of the terminal.
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        out.print(f"{name:<{width}}  {value}", markup=False)


def _preferred(one: Preference) -> str:
    return f"{_share(one.of_all)}; clearly {one.clearly}, slightly {one.slightly}"


def _person(one: Participant, a: str, b: str) -> str:
    said = f"{a} {one.preferred_a}, equal {one.equal}, {b} {one.preferred_b}"
    pace = "" if one.seconds is None else f"; {one.seconds:.1f} s each"
    return f"{one.ratings} ratings: {said}; left {one.left}, right {one.right}{pace}"


def _share(share: Share) -> str:
    if share.share is None or share.low is None or share.high is None:
        return "none"
    return f"{100 * share.share:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}] ({share.count} of {share.total})"


def _test(test: SignTest, a: str, b: str) -> str:
    return f"{b} {test.b}, {a} {test.a}, p = {_p(test.p)}; {test.ties} ties left out"


def _p(p: float | None) -> str:
    return "none" if p is None else f"{p:.2g}"
