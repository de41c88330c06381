"""Commands that ask a feed to load tables again, or to skip a schema change: snapshot, resume."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.requests import RequestFile
from ..engine.status import RUNNING, StatusFile
from ..errors import CheckpointError, ConfigError
from ..events import REST
from .feed import run_local
from .flags import DataDir, FeedFile, Json, Name, feed_tables
from .remote import CaFile, Feed, Server, ServerToken, client_of, reject_file
from .say import say

if TYPE_CHECKING:
    from ..engine.options import FeedOptions

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


def add_commands(app: typer.Typer) -> None:
    for command in (snapshot, resume):
        app.command()(command)


def snapshot(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[FEED.TOML] TABLE...",
            help="Feed file (not with --server), and tables to load again, such as shop.orders; '*' for all",
        ),
    ],
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
    from ..engine.options import feed_options
    from ..engine.renewal import request_load

    file, *table = words
    if not table:
        raise ConfigError("snapshot: name the tables to load again after the feed file, or '*' for all")
    options = feed_options(feed_tables(Path(file), None, None, None, name, data_dir))
    request_load(options, table)
    state = _state(options)
    when = "now" if state in RUNNING else f"when the feed runs; it is {state}"
    what = ", ".join("all tables" if name == REST else name for name in table)
    say(f"{what}: loaded again {when}")


def resume(
    file: FeedFile = None,
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
    """Continue a feed that stopped at a schema change.

    Skips the change, or loads its table again. With --server, also resumes a paused feed.
    """
    if server is not None:
        reject_file(file, data_dir)
        client = client_of(server, token_file, ca_file)
        resumed = client.resume(client.only_feed(feed), skip_ddl or (), resnapshot or ())
        say(f"{resumed.name}: {resumed.state}")
        return
    if file is None:
        raise ConfigError("resume: give the feed file, or --server")
    if not skip_ddl and not resnapshot:
        raise ConfigError(
            "resume: --skip-ddl POSITION or --resnapshot TABLE is missing; without, use tidemill run"
        )
    from ..engine.options import feed_options
    from ..engine.renewal import request_load

    options = feed_options(feed_tables(file, None, None, None, name, data_dir))
    if _state(options) in RUNNING:
        raise ConfigError(f"feed {options.name} is running: only a stopped feed can be resumed")
    if resnapshot:
        request_load(options, resnapshot)
    RequestFile(options.data_dir).add(skip=tuple(skip_ddl or ()))
    run_local(options, as_json)


def _state(options: FeedOptions) -> str:
    try:
        return StatusFile(options.data_dir).load().state
    except CheckpointError:
        return "new"
