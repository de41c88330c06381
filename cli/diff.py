"""The command diff: compares source and target of a feed."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from ..engine.stopping import set_by_signals
from ..errors import ConfigError, TidemillError
from .flags import DataDir, Json, Name, RequiredFile, feed_tables
from .say import say


def diff(
    file: RequiredFile,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", help='Limit to these tables of the feed, such as "shop.orders"; repeatable'),
    ] = None,
    sink: Annotated[
        str, typer.Option(help="Name of the sink to compare; required if the feed has several")
    ] = "",
    rate: Annotated[float, typer.Option(min=0, help="Maximum rows read per second; 0: unlimited")] = 0,
    syncpoint: Annotated[
        bool,
        typer.Option("--syncpoint", help="Compare source and target as of one syncpoint of a TiDB source"),
    ] = False,
    fix: Annotated[Path | None, typer.Option(help="Write SQL that repairs the target to this file")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Repair the target directly")] = False,
    name: Name = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Compare the rows of source and target while the feed runs.

    The exit status is 0 if they are equal, 1 if they differ, 2 after an error.

        tidemill diff feed.toml --fix repair.sql
    """
    if apply and fix is not None:
        raise ConfigError("--fix, --apply: give one of them")
    if apply and syncpoint:
        raise ConfigError("--apply, --syncpoint: rows of a past point can't be repaired: use --fix")
    from ..compare import Difference, open_diff
    from ..compare.pace import ComparisonStopped
    from ..compare.report import DiffProgress, Script, json_of, line_of

    stopping = Event()
    equal = True

    def wait(seconds: float) -> bool:
        progress.show(compared)
        return stopping.wait(seconds)

    try:
        with ExitStack() as stack:
            stack.enter_context(set_by_signals(stopping))
            document = feed_tables(file, None, None, None, name, data_dir)
            compared = stack.enter_context(
                open_diff(
                    document,
                    table or (),
                    sink=sink,
                    rows_per_second=rate,
                    at_syncpoint=syncpoint,
                    wait=wait,
                )
            )
            if warning := compared.warning:
                say(f"tidemill: {warning}", err=True)
            script = stack.enter_context(Script(fix, compared.target.begin_script())) if fix else None
            progress = stack.enter_context(DiffProgress(sys.stderr))
            for one in compared:
                more: dict[str, object] = {}
                if not isinstance(one, Difference):
                    equal = equal and one.is_equal
                elif script is not None:
                    if one.settled:
                        script.add(compared.repair())
                elif apply:
                    more["repaired"] = one.settled and compared.apply()
                note = "" if not more else ": repaired" if more["repaired"] else ": not repaired"
                say(json_of(one, **more) if as_json else f"{line_of(one)}{note}")
    except ComparisonStopped:
        typer.echo("tidemill: stopped before the end", err=True)
        raise typer.Exit(2) from None
    except TidemillError as error:
        say(f"tidemill: {error}", err=True)
        raise typer.Exit(2) from None
    if not equal:
        raise typer.Exit(1)
