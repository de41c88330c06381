"""Lines of text on the terminal."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import typer

from ..config import Finding
from ..config.printable import printable


def say(*lines: str, err: bool = False) -> None:
    """Print lines; control characters in them, as in names of tables, are escapes."""
    for line in lines:
        typer.echo(printable(line), err=err)


def say_findings(findings: Iterable[Finding], *, as_json: bool = False) -> None:
    """Print a line for each finding, and one for each statement that corrects it; or an object of JSON."""
    for one in findings:
        if as_json:
            document = {"level": one.level, "about": one.about, "text": one.text}
            more = {key: value for key, value in (("tables", one.tables), ("remedy", one.remedy)) if value}
            typer.echo(msgspec.json.encode(document | more))
        else:
            say(f"{one.level:7} {one.about}: {one.text}", *(f"        run: {each}" for each in one.remedy))
