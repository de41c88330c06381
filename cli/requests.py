"""Commands about single tables of a feed: tables, pause, resume, snapshot."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from ..engine.progress import tables_panel
from ..engine.requests import RequestFile
from ..engine.status import RUNNING, StatusFile
from ..engine.tables import TablesFile
from ..errors import CheckpointError, ConfigError
from ..events import REST
from .feed import PLAIN_WIDTH, run_local
from .flags import DataDir, DirectoryFile, Json, Name, RequiredFile, directory_of, feed_tables
from .say import say

if TYPE_CHECKING:
    from ..engine.options import FeedOptions
    from ..engine.table_verbs import TableVerb

LoadAgain = Annotated[
    list[str] | None,
    typer.Option("--resnapshot", help="Table to load again, such as \"shop.orders\", or '*'; repeatable"),
]
Skip = Annotated[
    list[str] | None,
    typer.Option(
        "--skip-ddl", help="Position of a schema change to skip, as in the feed's error; repeatable"
    ),
]
Parked = Annotated[
    list[str] | None,
    typer.Option("--table", help='Paused or failed table to load again, such as "shop.orders"; repeatable'),
]


def add_commands(app: typer.Typer) -> None:
    for command in (tables, pause, resume, snapshot):
        app.command()(command)


def tables(file: DirectoryFile = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the tables of a feed: state, lag, rows and errors.

    The list is as of some seconds ago, or of the end of the feed's last run.
    """
    listed = TablesFile(directory_of(file, data_dir)).load()
    if as_json:
        for one in listed:
            typer.echo(msgspec.json.encode(one))
    else:
        Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH).print(tables_panel(listed))


def pause(
    file: RequiredFile,
    table: Annotated[list[str], typer.Argument(help='Tables to pause, such as "shop.orders"')],
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Pause tables, while the others go on.

    Nothing of a table is applied until it is resumed. Takes effect while the feed runs, or when it runs next.
    """
    options = _options(file, name, data_dir)
    _request("pause", options, table)
    say(f"{', '.join(table)}: paused {_when(options)}")


def resume(
    file: RequiredFile,
    table: Parked = None,
    skip_ddl: Skip = None,
    resnapshot: LoadAgain = None,
    name: Name = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Resume tables, or a feed stopped by a schema change.

    A table is loaded again, while the feed runs, or when it runs next. A feed skips the change, or loads its
    table again, and runs.
    """
    if not (table or skip_ddl or resnapshot):
        raise ConfigError(
            "resume: --table TABLE, --skip-ddl POSITION or --resnapshot TABLE is missing; without, use "
            "tidemill run"
        )
    options = _options(file, name, data_dir)
    if (skip_ddl or resnapshot) and _state(options) in RUNNING:
        raise ConfigError(f"feed {options.name} is running: only a stopped feed can be resumed")
    if table:
        _request("resume", options, table)
        say(f"{', '.join(table)}: loaded again {_when(options)}")
    if resnapshot:
        _request("reload", options, resnapshot)
    if skip_ddl or resnapshot:
        RequestFile(options.data_dir).add(skip=tuple(skip_ddl or ()))
        run_local(options, as_json)


def snapshot(
    file: RequiredFile,
    table: Annotated[
        list[str], typer.Argument(help="Tables to load again, such as \"shop.orders\", or '*' for all")
    ],
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Load tables again, in all sinks of a feed.

    Takes effect while the feed runs, or when it runs next.
    """
    options = _options(file, name, data_dir)
    _request("reload", options, table)
    what = ", ".join("all tables" if one == REST else one for one in table)
    say(f"{what}: loaded again {_when(options)}")


def _options(file: RequiredFile, name: str | None, data_dir: DataDir) -> FeedOptions:
    from ..engine.options import feed_options

    return feed_options(feed_tables(file, None, None, None, name, data_dir))


def _request(verb: TableVerb, options: FeedOptions, names: list[str]) -> None:
    from ..actors import SystemClock
    from ..engine.opening import open_sinks
    from ..engine.table_verbs import request_tables

    request_tables(verb, names, options, open_sinks(options), SystemClock())


def _when(options: FeedOptions) -> str:
    state = _state(options)
    return "now" if state in RUNNING else f"when the feed runs; it is {state}"


def _state(options: FeedOptions) -> str:
    try:
        return StatusFile(options.data_dir).load().state
    except CheckpointError:
        return "new"
