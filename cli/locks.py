"""Commands about schema changes of merged tables that wait for shards: locks, unlock."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from ..engine.locks import locks as find_locks
from ..engine.locks import unlock as request_unlock
from ..sharding import FeedWait
from .flags import DataDir, Json, RequiredFile, directory_of
from .say import say


def locks(file: RequiredFile, data_dir: DataDir = None, as_json: Json = False) -> None:
    """List schema changes that wait for other shards.

    Only merged tables have such changes; the list is as of the feed's last status.

        tidemill locks feed.toml
    """
    waiting = find_locks(directory_of(file, data_dir))
    if as_json:
        typer.echo(msgspec.json.encode(waiting))
        return
    for lock in waiting:
        say(
            f"{lock.id}: {lock.statement}",
            f"  owner: {lock.owner}, {lock.seconds:.0f} s ago; {lock.held_rows} rows held"
            f"{'; more are read again later' if lock.seeks else ''}"
            f"{f'; {lock.further} further changes' if lock.further else ''}",
            f"  made it: {', '.join(lock.synced)}",
            f"  waits for: {', '.join(lock.unsynced)}",
        )
        for one in lock.feeds:
            say(f"  feed {one.feed}: {_feed(one)}")
    if not waiting:
        typer.echo("no schema change waits for shards")


def unlock(
    file: RequiredFile,
    lock: Annotated[str, typer.Argument(help="Id of the lock, as printed by `tidemill locks`")],
    owner: Annotated[
        str, typer.Option(help="Shard or feed whose statement is executed; default: the lock's owner")
    ] = "",
    skip: Annotated[
        bool,
        typer.Option(
            "--skip/--exec", help="Skip the statement (the target already has the change), or execute it"
        ),
    ] = False,
    force_remove: Annotated[
        str,
        typer.Option(
            metavar="FEED", help="Remove a feed that is gone for good; other feeds stop waiting for it"
        ),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done; change nothing")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Resolve a schema change that waits for other shards.

    Takes effect while the feed runs, or when it runs next.

        tidemill unlock feed.toml shop.orders
    """
    action = "skip" if skip else "exec"
    for sentence in request_unlock(
        directory_of(file, data_dir),
        lock,
        owner=owner,
        action=action,
        force_remove=force_remove,
        dry_run=dry_run,
    ):
        say(f"{'would ' if dry_run else ''}{sentence}")


def _feed(one: FeedWait) -> str:
    """Return what a feed waits for, or what waits for it."""
    if one.seconds is None:
        said = "not all of its shards have made it"
    elif one.is_owner:
        said = f"made it {one.seconds:.0f} s ago; " + (
            "executes it once all feeds have made it" if one.step == "waiting" else "executes it"
        )
    else:
        said = f"made it {one.seconds:.0f} s ago; waits until it is executed"
    return said if one.is_running else f"{said}; not running"
