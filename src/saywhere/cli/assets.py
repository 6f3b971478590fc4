"""`saywhere assets`: weights by others, fetched once and checked."""

from __future__ import annotations

from typing import Annotated

import typer

from saywhere.cli.console import MB, err, in_megabytes, out, stages
from saywhere.core.errors import InvalidFile, InvalidValue

app = typer.Typer(help="Third-party weights: list, fetch and verify them.", no_args_is_help=True, rich_markup_mode=None)

Names = Annotated[
    list[str] | None, typer.Argument(help="Names of assets; `saywhere assets list` shows them.", metavar="NAMES")
]


@app.command("list")
def list_assets() -> None:
    """List the assets: name, size, whether it is in the cache, licence, and what it is."""
    from saywhere.assets import cache_folder, is_cached, listed

    assets = listed()
    name_width, licence_width = (max(len(text) for text in column) for column in zip(*_labels(), strict=True))
    for asset in assets:
        state = "cached" if is_cached(asset.name) else "-"
        line = f"{asset.name:<{name_width}}  {_megabytes(asset.size):>8}  {state:<6}  {asset.licence:<{licence_width}}"
        out.print(f"{line}  {asset.what}", markup=False)
    out.print(f"cache: {cache_folder()}", markup=False)


@app.command()
def fetch(
    names: Names = None, everything: Annotated[bool, typer.Option("--all", help="Fetch all assets.")] = False
) -> None:
    """Download assets into the cache. Those already there are only verified, without a network."""
    from saywhere.assets import fetch as bring
    from saywhere.assets import find

    for asset in [find(name) for name in _chosen(names, everything)]:
        out.print(f"{asset.name}: {asset.what}. Licence: {asset.licence}", markup=False)
        with stages() as show:
            folder = bring(asset.name, in_megabytes(show))
        out.print(f"{asset.name}: {folder}", markup=False)


@app.command()
def verify(names: Names = None) -> None:
    """Verify that assets (all by default) are in the cache and unaltered. Exit code 1 if one is not."""
    from saywhere.assets import AssetUnavailable, find
    from saywhere.assets import verify as check

    wrong = 0
    for asset in [find(name) for name in _chosen(names, everything=not names)]:
        try:
            check(asset.name)
        except (AssetUnavailable, InvalidFile) as error:
            wrong += 1
            err.print(str(error), markup=False)
        else:
            out.print(f"{asset.name}: unaltered", markup=False)
    if wrong:
        raise typer.Exit(1)


def _labels() -> list[tuple[str, str]]:
    from saywhere.assets import listed

    return [(asset.name, asset.licence) for asset in listed()]


def _chosen(names: list[str] | None, everything: bool) -> list[str]:
    if everything == bool(names):
        raise InvalidValue("assets", "none were named" if not names else "names and --all were both given", "give one")
    return [name for name, _ in _labels()] if everything else list(dict.fromkeys(names or []))


def _megabytes(size: int) -> str:
    return f"{size / MB:,.1f} MB"
