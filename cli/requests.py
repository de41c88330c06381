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
from .remote import ServerFeed, may_ask_a_server
from .say import say

if TYPE_CHECKING:
    from ..engine.options import FeedOptions
    from ..engine.table_verbs import TableVerb
    from ..server.model.feeds import FeedSummary

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


def tables(file: DirectoryFile = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the tables of a feed: state, lag, rows and errors.

    The list is as of some seconds ago, or of the end of the feed's last run.

        tidemill tables feed.toml
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
        help="Feed file (not with --server) and full names of tables, such as shop.orders",
    ),
]


@may_ask_a_server
def pause(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FEED.TOML] TABLE...",
            help="Feed file (not with --server) and tables, such as shop.orders; none: the server's feed",
        ),
    ] = None,
    name: Name = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    *,
    server_feed: ServerFeed | None,
) -> None:
    """Pause tables of a feed, or a whole feed of a server.

    Nothing of a table is applied until it is resumed. Takes effect while the feed runs, or when it runs next.

        tidemill pause feed.toml shop.orders
    """
    if server_feed is None:
        options, tables = _named("pause", words or [], name, data_dir)
        _request("pause", options, tables)
        _say_requested("paused", tables, options.name, _state(options), as_json=as_json)
    elif words:
        for one in words:
            server_feed.client.pause_table(server_feed.name, one)
        _say_requested("paused", words, server_feed.name, server_feed.state, as_json=as_json)
    else:
        _say_state(server_feed.client.pause(server_feed.name), as_json=as_json)


@may_ask_a_server
def resume(
    file: FeedFile = None,
    table: Parked = None,
    skip_ddl: Skip = None,
    resnapshot: LoadAgain = None,
    name: Name = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    *,
    server_feed: ServerFeed | None,
) -> None:
    """Resume tables, or a feed stopped by a schema change.

    A table is loaded again, while the feed runs, or when it runs next. A feed skips the change, or loads its
    table again, and runs. With --server, also resumes a paused feed.

        tidemill resume feed.toml --resnapshot shop.orders
    """
    if server_feed is not None:
        for one in table or ():
            server_feed.client.resume_table(server_feed.name, one)
        if table:
            _say_requested("loaded again", table, server_feed.name, server_feed.state, as_json=as_json)
        if skip_ddl or resnapshot or not table:
            _say_state(
                server_feed.client.resume(server_feed.name, skip_ddl or (), resnapshot or ()), as_json=as_json
            )
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
        _say_requested("loaded again", table, options.name, _state(options), as_json=as_json)
    if resnapshot:
        _request("reload", options, resnapshot)
    if skip_ddl or resnapshot:
        RequestFile(options.data_dir).add(skip=tuple(skip_ddl or ()))
        run_local(options, as_json)


@may_ask_a_server
def snapshot(
    words: Words,
    name: Name = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    *,
    server_feed: ServerFeed | None,
) -> None:
    """Load tables again, in all sinks of a feed.

    Takes effect while the feed runs, or when it runs next.

        tidemill snapshot feed.toml shop.orders
    """
    if server_feed is None:
        options, tables = _named("snapshot", words, name, data_dir)
        _request("reload", options, tables)
        _say_requested("loaded again", tables, options.name, _state(options), as_json=as_json)
        return
    for one in words:
        server_feed.client.reload_table(server_feed.name, one)
    _say_requested("loaded again", words, server_feed.name, server_feed.state, as_json=as_json)


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


def _say_requested(outcome: str, tables: list[str], feed: str, state: str, *, as_json: bool) -> None:
    """Print the outcome of a request about tables, and when it takes effect; `state` is the feed's."""
    if as_json:
        for one in tables:
            typer.echo(json.dumps({"feed": feed, "state": state, "table": one, "requested": outcome}))
        return
    what = ", ".join("all tables" if one == REST else one for one in tables)
    when = "now" if state in RUNNING else f"when the feed runs; it is {state}"
    say(f"{what}: {outcome} {when}")


def _say_state(feed: FeedSummary, *, as_json: bool) -> None:
    line = {"feed": feed.name, "state": feed.state}
    say(json.dumps(line) if as_json else f"{feed.name}: {feed.state}")


def _state(options: FeedOptions) -> str:
    try:
        return StatusFile(options.data_dir).load().state
    except CheckpointError:
        return "new"
