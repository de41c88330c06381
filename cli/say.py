"""Lines of text on the terminal."""

from __future__ import annotations

import typer

from ..config.printable import printable


def say(*lines: str, err: bool = False) -> None:
    """Print lines; control characters in them, as in names of tables, are escapes."""
    for line in lines:
        typer.echo(printable(line), err=err)
