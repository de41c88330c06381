"""Commands about single tables of a feed: tables, pause, resume, snapshot."""

from __future__ import annotations

import json
import sys
from pathlib import Path
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
from .flags import DataDir, DirectoryFile, FeedFile, Json, Name, directory_of, feed_tables
from .remote import CaFile, Feed, Server, ServerToken, client_of, reject_file
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


Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[FEED.TOML] TABLE...",
        help="Feed file (not with --server), and full names of tables, such as shop.orders",
    ),
]


def pause(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FEED.TOML] TABLE...",
            help="Feed file (not with --server), and tables, such as shop.orders; only --server: its feed",
        ),
    ] = None,
    name: Name = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    server: Server = None,
    feed: Feed = "",
    token_file: ServerToken = None,
    ca_file: CaFile = None,
) -> None:
    """Pause tables, while the others go on, or a server's feed.

    Nothing of a table is applied until it is resumed. Takes effect while the feed runs, or when it runs next.
    """
    if server is not None:
        reject_file(None, data_dir)
        client = client_of(server, token_file, ca_file)
        chosen = client.only_feed(feed)
        if words:
            for one in words:
                say(*client.pause_table(chosen, one))
            return
        paused = client.pause(chosen)
        say(
            json.dumps({"feed": paused.name, "state": paused.state})
            if as_json
            else f"{paused.name}: {paused.state}"
        )
        return
    options, tables = _named("pause", words or [], name, data_dir)
    _request("pause", options, tables)
    say(f"{', '.join(tables)}: paused {_when(options)}")


def resume(
    file: FeedFile = None,
    table: Parked = None,
    skip_ddl: Skip = None,
    resnapshot: LoadAgain = None,
    name: Name = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    server: Server = None,
    feed: Feed = "",
    token_file: ServerToken = None,
    ca_file: CaFile = None,
) -> None:
    """Resume tables, or a feed stopped by a schema change.

    A table is loaded again, while the feed runs, or when it runs next. A feed skips the change, or loads its
    table again, and runs. With --server, also resumes a paused feed.
    """
    if server is not None:
        reject_file(file, data_dir)
        client = client_of(server, token_file, ca_file)
        chosen = client.only_feed(feed)
        for one in table or ():
            say(*client.resume_table(chosen, one))
        if skip_ddl or resnapshot or not table:
            resumed = client.resume(chosen, skip_ddl or (), resnapshot or ())
            say(f"{resumed.name}: {resumed.state}")
        return
    if file is None:
        raise ConfigError("resume: give the feed file, or --server")
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
    words: Words,
    name: Name = None,
    data_dir: DataDir = None,
    server: Server = None,
    feed: Feed = "",
    token_file: ServerToken = None,
    ca_file: CaFile = None,
) -> None:
    """Load tables again, in all sinks of a feed.

    Takes effect while the feed runs, or when it runs next.
    """
    if server is not None:
        reject_file(None, data_dir)
        client = client_of(server, token_file, ca_file)
        chosen = client.only_feed(feed)
        for one in words:
            client.reload_table(chosen, one)
        say(f"{', '.join(words)}: requested")
        return
    options, tables = _named("snapshot", words, name, data_dir)
    _request("reload", options, tables)
    what = ", ".join("all tables" if one == REST else one for one in tables)
    say(f"{what}: loaded again {_when(options)}")


def _named(
    command: str, words: list[str], name: str | None, data_dir: DataDir
) -> tuple[FeedOptions, list[str]]:
    """Return a feed's options, and the tables after its file. Raises ConfigError."""
    if len(words) < 2:
        raise ConfigError(f"{command}: give the feed file, and after it the tables, such as shop.orders")
    return _options(Path(words[0]), name, data_dir), words[1:]


def _options(file: Path, name: str | None, data_dir: DataDir) -> FeedOptions:
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
