"""The command `replay`: a relay into a target."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from .. import config
from ..actors import SystemClock
from ..engine.stopping import set_by_signals
from ..errors import ConfigError
from ..events import Ts, compose_ts, timestamp
from .flags import DataDir, Json, Tables
from .say import say

if TYPE_CHECKING:
    from ..engine.replay import Replay, Summary
    from ..sink import Sink

DEFAULT_NAME = "replay"
SHOW_SECONDS = 1.0


def replay(
    what: Annotated[
        Path,
        typer.Argument(metavar="FEED.TOML|DIRECTORY", help="Feed file with a relay, or directory of a relay"),
    ],
    sink: Annotated[
        str | None, typer.Option(help="With a feed file: name of its sink; with a directory: target URL")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="With a directory: name of the checkpoint in the target; default: replay"),
    ] = None,
    table: Tables = None,
    at: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Commit ts of a target that has no checkpoint; default: the start of the relay",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            help='Last commit ts or time (UTC) to apply, such as "2026-11-23 10:00:00"; default: all'
        ),
    ] = None,
    data_dir: DataDir = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be applied; change nothing")
    ] = False,
    as_json: Json = False,
) -> None:
    """Apply the changes in a relay to a target.

    Starts at the target's checkpoint, and needs no source.

        tidemill replay feed.toml --sink sqlite:///copy.db
    """
    from ..chain.selection.tables import TablePatterns
    from ..engine.replay import Replay

    directory, feed, target = what, name or DEFAULT_NAME, None
    if not what.is_dir():
        if table or name or data_dir:
            raise ConfigError(
                "replay: --table, --name and --data-dir are for a relay's directory: a feed's checkpoint is "
                "for all its tables"
            )
        feed, directory, target = _of_feed(what, sink)
    elif table and name:
        raise ConfigError("replay: --table and --name: a checkpoint of that name is for all tables")
    elif sink is not None:
        target = _of_url(sink, feed, data_dir)
    elif not dry_run:
        raise ConfigError("replay: --sink is missing: the target's URL")
    tables = TablePatterns.parse(table) if table else None
    made = Replay(directory, SystemClock(), until=_ts(until), tables=tables)
    if dry_run or target is None:
        _print(made.summary(at or 0), as_json)
    else:
        _run(made, target, feed, at, as_json)


def _run(made: Replay, sink: Sink, feed: str, at: Ts | None, as_json: bool) -> None:
    clock = SystemClock()
    shown = clock.now()

    def show(*, always: bool = False) -> None:
        nonlocal shown
        if not always and clock.now() - shown < SHOW_SECONDS:
            return
        shown, done = clock.now(), made.progress
        if as_json:
            typer.echo(msgspec.json.encode(done))
            return
        part = 100 * done.bytes // max(1, done.total_bytes)
        upto = f"{done.ts} ({timestamp(done.ts):%Y-%m-%d %H:%M:%S} UTC)" if done.ts else "the beginning"
        what = f"{done.transactions:,} transactions, {done.rows:,} rows, {done.ddls:,} schema changes"
        typer.echo(f"replayed {what}, {part} %: the target is at {upto}", err=True)

    with set_by_signals(Event()) as stopping:
        made.run(sink, feed, stopping, at=at, show=show)
        show(always=True)


def _of_feed(file: Path, sink: str | None) -> tuple[str, Path, Sink]:
    """Return the feed's name, the relay's directory and the sink. Raises ConfigError."""
    from ..engine.opening import sink_context
    from ..engine.options import feed_options
    from ..sink.registry import open_given
    from ..sink.relay.stage import check_owner

    options = feed_options(config.read(file))
    sinks = [one for one in options.sinks if one.rules.relay is not None and sink in (None, one.name)]
    if len(sinks) != 1:
        names = ", ".join(one.name for one in sinks) or "none"
        raise ConfigError(f"{file}: sinks with a relay: {names}: name one with --sink")
    (one,) = sinks
    relay = one.rules.relay
    assert relay is not None
    check_owner(relay.directory, options.name, one.name)
    return options.name, relay.directory, open_given(one.given, sink_context(options, one.name))


def _of_url(url: str, feed: str, data_dir: Path | None) -> Sink:
    """Return the sink of a URL. Raises ConfigError."""
    from ..engine.checkpoint import CheckpointFile
    from ..engine.options import DATA_DIR
    from ..sink import open_sink

    store = CheckpointFile((data_dir or DATA_DIR) / f"{feed}.replay.checkpoint")
    return open_sink("replay", url, feed=feed, store=store)


def _ts(text: str | None) -> Ts | None:
    """Return a ts, or the last one of a time's millisecond. Raises ConfigError."""
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--until: {text!r} is no ts, and no time such as 2026-11-23 10:00:00") from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return compose_ts(int(moment.timestamp() * 1000) + 1) - 1


def _print(summary: Summary, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(summary)))
        return
    typer.echo(f"after ts {summary.begin_ts} up to {summary.end_ts}: {summary.transactions:,} transactions")
    for table, changes in sorted(summary.changes.items()):
        say(f"{table}: " + ", ".join(f"{count:,} {op}" for op, count in changes.items()))
    for query in summary.ddls:
        say(f"schema change: {query}")
