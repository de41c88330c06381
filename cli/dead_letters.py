"""Commands about changes that a target rejected: dead-letters list, retry, drop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from .flags import DataDir, Json, Name, RequiredFile, feed_tables
from .say import say

if TYPE_CHECKING:
    from ..sink.dead_letters import DeadLetter, DeadLetters

dead_letters = typer.Typer(
    help="List, retry or drop changes that a target rejected.",
    no_args_is_help=True,
)

InTable = Annotated[str | None, typer.Option("--table", help='Limit to one table, such as "shop.orders"')]
Number = Annotated[
    int | None,
    typer.Option(
        "--id",
        help="Limit to the dead letter with this number; retry and drop take all dead letters of its row",
    ),
]
OfSink = Annotated[str | None, typer.Option("--sink", help="Limit to the sink of this name")]


Act: TypeAlias = "Callable[[str, DeadLetters, str | None, int | None, bool], bool]"
"""A command's part for one sink: takes the sink's name, its letters, --table, --id and --json, and returns
True if some letters are rejected again."""


def _command(name: str) -> Callable[[Act], Act]:
    """Add a command that acts on the dead letters of each meant sink; status 1 if one returns True."""

    def add(act: Act) -> Act:
        def command(
            file: RequiredFile,
            table: InTable = None,
            number: Number = None,
            sink: OfSink = None,
            name: Name = None,
            data_dir: DataDir = None,
            as_json: Json = False,
        ) -> None:
            with _opened(file, name, data_dir, sink, number) as opened:
                left = [act(owner, letters, table, number, as_json) for owner, letters in opened]
            if any(left):
                raise typer.Exit(1)

        dead_letters.command(name, help=act.__doc__)(command)
        return act

    return add


@_command("list")
def list_letters(
    owner: str, letters: DeadLetters, table: str | None, number: int | None, as_json: bool
) -> bool:
    """List dead letters in order.

    Prints number, operation, table, key, commit ts and reason of each.

        tidemill dead-letters list feed.toml --table shop.orders
    """
    for letter in letters.list(table, number):
        say(_json(owner, letter) if as_json else _line(owner, letter))
    return False


@_command("retry")
def retry(owner: str, letters: DeadLetters, table: str | None, number: int | None, as_json: bool) -> bool:
    """Apply dead letters again, row by row and in order.

    The exit status is 1 if the target rejects some of them again.

        tidemill dead-letters retry feed.toml
    """
    result = letters.retry(table, number)
    if as_json:
        rejected = [{"id": letter.id, "reason": letter.reason} for letter in result.left]
        typer.echo(json.dumps({"sink": owner, "applied": result.applied, "rejected": rejected}))
        return bool(result.left)
    typer.echo(f"{owner}: {len(result.applied)} applied")
    for letter in result.left:
        say(f"rejected again: {_line(owner, letter)}")
    return bool(result.left)


@_command("drop")
def drop(owner: str, letters: DeadLetters, table: str | None, number: int | None, as_json: bool) -> bool:
    """Delete dead letters without applying them.

    Deletes all, unless --table or --id limits them.

        tidemill dead-letters drop feed.toml --sink copy --id 3
    """
    dropped = letters.drop(table, number)
    line = {"sink": owner, "dropped": dropped}
    typer.echo(json.dumps(line) if as_json else f"{owner}: {len(dropped)} dropped")
    return False


@contextmanager
def _opened(
    file: Path, name: str | None, data_dir: Path | None, sink: str | None, number: int | None
) -> Iterator[list[tuple[str, DeadLetters]]]:
    """Give the dead letters of the feed by sink, and close them in the end. Raises ConfigError."""
    from ..engine.letters import opened_letters
    from ..engine.options import feed_options

    options = feed_options(feed_tables(file, None, None, None, name, data_dir))
    with opened_letters(options, sink, number) as opened:
        yield opened


def _line(owner: str, letter: DeadLetter) -> str:
    return (
        f"{owner} {letter.id}: {letter.op} of {letter.table} ({letter.key}) at {letter.ts}: {letter.reason}"
    )


def _json(owner: str, letter: DeadLetter) -> str:
    from ..engine.letters import letter_object

    return json.dumps(letter_object(owner, letter))
