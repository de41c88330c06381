"""The command init: writes the first feed file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .flags import Name, Sinks, Tables
from .say import say, say_findings

SourceUrl = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE_URL",
        help="Source, such as mysql://user:password@host:3306 or tikv://pd1:2379; ${NAME} in it, in single "
        "quotes, is a variable of the environment",
    ),
]


def init(
    source: SourceUrl,
    sink: Sinks = None,
    table: Tables = None,
    name: Name = None,
    out: Annotated[Path, typer.Option(help="File to write; it must not exist")] = Path("feed.toml"),
) -> None:
    """Write a feed file for a live database.

    It has the tables that are there, with comments about their keys and about what the source lacks. Tables
    that can't be followed are left out. Passwords are not written: the file names variables of the
    environment for them. Without --sink, the feed copies into sqlite:///copy.db.

        tidemill init 'mysql://repl:${PASSWORD}@db' --table 'shop.*'
    """
    if out.exists():
        raise ConfigError(f"{out} exists already: name another file with --out, or remove it")
    from ..engine.draft import draft

    made = draft(source, sink or (), table or (), name or "")
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(made.text)
    except OSError as error:
        raise ConfigError(f"{out}: {error.strerror}: name another file with --out") from None
    say_findings([one for one in made.findings if one.level != "ok"])
    left_out = f"; left out: {', '.join(made.left_out)}" if made.left_out else ""
    say(f"{out} is written: it follows {made.followed} table{'s' * (made.followed != 1)}{left_out}")
    for variable in made.secrets:
        say(f"the file has ${{{variable}}} in place of the secret: set it to the text that the URL has there")
    say(f"next: tidemill check {out}, then tidemill run {out}")
