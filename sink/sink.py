"""Where committed rows go: the protocol of every sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ..errors import ConfigError
from ..events import Batch, Checkpoint, Item


class Sink(Protocol):
    """A target. Called by one thread at a time: by the feed to open it, then only by its SinkActor.

    open, then any number of write and flush, then close.
    """

    name: str
    """What the feed, its messages and its checkpoints call this sink."""

    target: str
    """What is written to, spelled one way: two sinks of a feed with the same target are an error."""

    reads_rows: bool
    """True if it reads rows as tuples: they are decoded before they are handed to it. A sink without this
    attribute is taken for one that does."""

    def open(self) -> Checkpoint | None:
        """Connect, and return the checkpoint that the target is at; None if it has none yet.

        Leftovers of a crash are gone when this returns: the target holds exactly what its checkpoint
        says. Raises Retryable if the target can't be reached now; SinkError if it can't be used;
        CheckpointError if its checkpoint is damaged.
        """

    def write(self, batch: Batch) -> None:
        """Accept items in commit order; may buffer.

        All of a batch is applied or nothing of it is. A Ddl is alone in its batch. No item has a
        refusal. A batch without a checkpoint ends inside a transaction: what it holds takes effect
        only with a later batch that has one.

        Raises Retryable if the target can't take it now: everything written since the last flush is
        undone, and comes again from its first batch. Raises SinkError if it can never be written, or
        if the target isn't what the checkpoint says: a row to be changed is missing, one to be
        inserted is there.
        """

    def flush(self) -> Checkpoint | None:
        """Make everything accepted durable; return the checkpoint of what is.

        Resuming from it loses nothing and, where the target keeps the checkpoint with the rows,
        repeats nothing. Inside a transaction it is the one from before. None: nothing was ever
        durable here. Raises as `write` does.
        """

    def has_table(self, schema: str, table: str) -> bool:
        """Whether the target has this table of the source; True where it can't be told.

        Raises as `write` does.
        """

    def close(self) -> None:
        """Let the target go; what wasn't flushed is undone. Doesn't raise; may be called twice."""


class CheckpointStore(Protocol):
    """Keeps the checkpoint of a sink whose target can't."""

    def load(self) -> tuple[Checkpoint, int] | None:
        """The checkpoint and the length that were saved last; None if none ever was."""

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        """Durable once this returns. `length` is the sink's own: how long its file was."""


ACCEPTED = (
    "sqlite:///file, mysql://user@host/, mariadb://user@host/, file:///rows.ndjson, parquet:///directory "
    "or a function"
)
_NO_OPTIONS: Mapping[str, Any] = {}


def open_sink(
    name: str,
    target: str | Callable[[Sequence[Item]], object],
    *,
    feed: str,
    store: CheckpointStore,
    options: Mapping[str, Any] = _NO_OPTIONS,
) -> Sink:
    """The sink for a URL, or for a function that takes items; not opened yet.

    `store` serves the sinks that can't keep their checkpoint in the target. `options` are the sink's
    own: `table_name` of SQLite, `schema` of MySQL and MariaDB, `format` of files, `file_bytes` and
    `flush_seconds` of Parquet, `explicit` of a function. Raises
    ConfigError, naming what is accepted.
    """
    if callable(target):
        from .python import PythonSink

        return PythonSink(name, target, store, **_checked(name, options, {"explicit": bool}))
    scheme = target.partition(":")[0]
    if scheme in ("file", "parquet"):
        return _open_files(name, target, store, options)
    from .sql.sql import SqlSink

    url = _parsed(name, target)
    match url.get_backend_name():
        case "sqlite":
            from .sql.sqlite import SqliteTarget

            return SqlSink(name, SqliteTarget(url, feed, **_checked(name, options, {"table_name": str})))
        case "mysql" | "mariadb":
            try:
                from .sql.mysql import MySqlTarget
            except ImportError as error:
                raise ConfigError(f"sink {name}: {scheme} needs: pip install 'tidemill[mysql]'") from error

            return SqlSink(name, MySqlTarget(url, feed, **_checked(name, options, {"schema": str})))
    raise ConfigError(f"sink {name}: no sink writes to {scheme!r}; accepted: {ACCEPTED}")


def _open_files(name: str, target: str, store: CheckpointStore, options: Mapping[str, Any]) -> Sink:
    """A file of lines, or a directory of Parquet files: parquet:///rows, file:///rows?format=parquet."""
    scheme, _, path = target.partition(":")
    path, _, asked = path.removeprefix("//").partition("?format=")
    chosen = "parquet" if scheme == "parquet" else options.get("format", asked or "ndjson")
    if chosen == "ndjson":
        from .files.ndjson import FileSink

        _checked(name, options, {"format": str})
        return FileSink(name, _path(name, target, path, "file:///var/rows.ndjson"), store)
    if chosen != "parquet":
        raise ConfigError(f"sink {name}: no format {chosen!r}; accepted: ndjson, parquet")
    try:
        from .files.parquet import ParquetOptions, ParquetSink
    except ImportError as error:
        raise ConfigError(f"sink {name}: Parquet needs: pip install 'tidemill[arrow]'") from error
    accepted = {"format": str, "file_bytes": int, "flush_seconds": float}
    found = _checked(name, options, accepted)
    found.pop("format", None)
    directory = _path(name, target, path, "parquet:///var/rows")
    try:
        return ParquetSink(name, directory, store, ParquetOptions(**found))
    except ConfigError as error:
        raise ConfigError(f"sink {name}: {error}") from None


def _path(name: str, target: str, path: str, example: str) -> Path:
    if not path:
        raise ConfigError(f"sink {name}: {target!r} names no file; for instance {example}")
    return Path(path)


def _parsed(name: str, target: str) -> URL:
    try:
        return make_url(target)
    except ArgumentError:
        raise ConfigError(f"sink {name}: {target!r} is not a URL; accepted: {ACCEPTED}") from None


def _checked(name: str, options: Mapping[str, Any], accepted: Mapping[str, type]) -> dict[str, Any]:
    for key, value in options.items():
        if key not in accepted:
            names = ", ".join(accepted) or "none"
            raise ConfigError(f"sink {name}: unknown option {key!r}; accepted: {names}")
        kind = accepted[key]
        fits = isinstance(value, (int, float) if kind is float else kind)
        if not fits or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(f"sink {name}: {key} must be a {kind.__name__}, not {value!r}")
    return dict(options)
