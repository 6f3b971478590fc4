"""The command line: `saywhere …`."""

from saywhere.cli.app import main

__all__ = ["main"]
