"""`python -m saywhere` is `saywhere`."""

from saywhere.cli import main

main()
