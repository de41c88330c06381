"""Commands that ask a feed to load tables again, or to skip a schema change: snapshot, resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.requests import RequestFile, TableRequests
from ..engine.status import RUNNING, StatusFile
from ..errors import CheckpointError, ConfigError
from ..events import REST
from .feed import run_local
from .flags import DataDir, Json, Name, RequiredFile, feed_tables
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
    from ..engine.options import feed_options

    options = feed_options(feed_tables(file, None, None, None, name, data_dir))
    request_load(options, table)
    state = _state(options)
    when = "now" if state in RUNNING else f"when the feed runs; it is {state}"
    what = ", ".join("all tables" if name == REST else name for name in table)
    say(f"{what}: loaded again {when}")


def resume(
    file: RequiredFile,
    skip_ddl: Skip = None,
    resnapshot: LoadAgain = None,
    name: Name = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Continue a feed that stopped at a schema change.

    Skips the change, or loads its table again.
    """
    if not skip_ddl and not resnapshot:
        raise ConfigError(
            "resume: --skip-ddl POSITION or --resnapshot TABLE is missing; without, use tidemill run"
        )
    from ..engine.options import feed_options

    options = feed_options(feed_tables(file, None, None, None, name, data_dir))
    if _state(options) in RUNNING:
        raise ConfigError(f"feed {options.name} is running: only a stopped feed can be resumed")
    if resnapshot:
        request_load(options, resnapshot)
    RequestFile(options.data_dir).add(skip=tuple(skip_ddl or ()))
    run_local(options, as_json)


def request_load(options: FeedOptions, tables: list[str]) -> None:
    """Store the request. Raises ConfigError for a table that the feed doesn't follow."""
    if REST in tables:
        from ..engine.renewal import reject_unrenewable

        reject_unrenewable(options)
    for table in tables:
        if table != REST and not options.tables.matches_full(table):
            raise ConfigError(
                f"{table}: the feed doesn't follow this table: its patterns are "
                f"{', '.join(options.tables.patterns)}"
            )
    RequestFile(options.data_dir).add(TableRequests(load_again=tuple(tables)))


def _state(options: FeedOptions) -> str:
    try:
        return StatusFile(options.data_dir).load().state
    except CheckpointError:
        return "new"
