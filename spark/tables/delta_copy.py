"""A Delta table that copies a table, changed in commits that are made once and in order.

Each commit has a number in the table's log, as the version of the application `tidemill`: Delta makes no
commit with a number that isn't above the last one, and lets one of two that are made at once fail. A note in
the same commit says what it is: the batch, the step in it, and the definition of the source's table after it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ...errors import CheckpointError, ConfigError
from ...events import Table
from .table_changes import Order

APPLICATION: Final = "tidemill"
_NOTE: Final = "tidemill"
"""Key of the note in a commit's metadata, which is a JSON object."""
_STEPS: Final = 1 << 16
"""Numbers of a batch's commits."""
_LOOKED_AT: Final = 20
"""Commits in which a note is sought before all are read."""
_ATTEMPTS: Final = 5
_DELTA: Final = "spark.databricks.delta"


class Note(Struct, frozen=True, kw_only=True):
    """The description of a commit of merges, in the commit."""

    batch: int
    step: int
    is_last: bool
    """True for the last step of its batch."""
    end: Order
    """Order of the batch's last change."""
    table: Table | None
    """The source's definition of the table after this step; None if it isn't known."""


class DeltaCopy:
    """A copy, by its name in SQL. Used by one thread at a time; other tables' copies may be used
    meanwhile."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        """Raises ConfigError if it is no Delta table, and Spark's error if there is none."""
        self.name: Final = name
        # A session of its own, as a commit's number and note are settings.
        self._spark: Final = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
        detail = self._detail()
        self._location: Final[str] = detail["location"]
        self._partitions: Final[list[str]] = detail["partitionColumns"]

    def _detail(self) -> dict[str, Any]:
        kind = self._spark.sql(f"DESCRIBE DETAIL {self.name}").collect()[0].asDict()
        if kind["format"] != "delta":
            raise ConfigError(f"{self.name} is a table of {kind['format']}: merge_into takes Delta tables")
        return kind

    @property
    def schema(self) -> StructType:
        return self._spark.table(self.name).schema

    def rows(self) -> DataFrame:
        return self._spark.table(self.name)

    def last(self) -> Note | None:
        """Return the note of the last commit of merges; None if there is none, or if its log has expired."""
        for limit in (f" LIMIT {_LOOKED_AT}", ""):
            commits = self._spark.sql(f"DESCRIBE HISTORY {self.name}{limit}").select("userMetadata").collect()
            for (text,) in commits:
                if (note := _read(text)) is not None:
                    return note
        return None

    def merge(self, changes: DataFrame, statement: Callable[[str, str], str], note: Note) -> None:
        """Execute `statement(table, view)`, a MERGE INTO of a view of `changes`."""
        view = f"tidemill_{uuid4().hex}"
        changes.createGlobalTempView(view)
        try:
            self._commit(lambda: self._spark.sql(statement(self.name, f"global_temp.{view}")).collect(), note)
        finally:
            self._spark.catalog.dropGlobalTempView(view)

    def rewrite(self, changed: Callable[[DataFrame], DataFrame], note: Note) -> None:
        """Replace all rows, and the columns, by those of `changed(rows)`."""

        def write() -> None:
            frame = changed(self.rows())
            names = {name.lower() for name in frame.columns}
            partitions = [name for name in self._partitions if name.lower() in names]
            writer = frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
            (writer.partitionBy(*partitions) if partitions else writer).save(self._location)

        self._commit(write, note)

    def add_columns(self, changed: Callable[[DataFrame], DataFrame], note: Note) -> None:
        """Add the columns that `changed(rows)` has and the table hasn't; its rows have NULL there."""

        def write() -> None:
            frame = changed(self.rows()).limit(0)
            frame.write.format("delta").mode("append").option("mergeSchema", "true").save(self._location)

        self._commit(write, note)

    def note(self, note: Note) -> None:
        """Make a commit that changes nothing."""
        self.add_columns(lambda rows: rows, note)

    def _commit(self, change: Callable[[], object], note: Note) -> None:
        """Make a commit, unless the table has its number or a later one. Repeats it after one of another
        program, such as OPTIMIZE. Raises CheckpointError if another driver makes one at this moment, else
        Spark's error.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with self._numbered(note):
                    change()
            except PySparkException as error:
                text = str(error)
                if "ConcurrentTransaction" in text or "DELTA_CONCURRENT_TRANSACTION" in text:
                    raise CheckpointError(
                        f"{self.name}: another driver merged into it at the same time as batch {note.batch}; "
                        "this one changed nothing: let one query write there"
                    ) from error
                if attempt == _ATTEMPTS or "DELTA_CONCURRENT" not in text:
                    raise
            else:
                return

    @contextmanager
    def _numbered(self, note: Note) -> Iterator[None]:
        settings = {
            f"{_DELTA}.write.txnAppId": APPLICATION,
            f"{_DELTA}.write.txnVersion": str(note.batch * _STEPS + note.step),
            f"{_DELTA}.commitInfo.userMetadata": _text(note),
        }
        for name, value in settings.items():
            self._spark.conf.set(name, value)
        try:
            yield
        finally:
            for name in settings:
                self._spark.conf.unset(name)


def check_steps(name: str, steps: int) -> None:
    """Raise ConfigError for a batch with more steps than there are numbers."""
    if steps > _STEPS:
        raise ConfigError(f"{name}: a batch with {steps} schema changes; at most {_STEPS // 2} can be merged")


def _text(note: Note) -> str:
    """Return a note as JSON, with the definition in hex: a table may have a column named password."""
    packed = zlib.compress(msgspec.json.encode(note)).hex()
    return json.dumps({_NOTE: packed})


def _read(text: str | None) -> Note | None:
    """Return the note in a commit's metadata; None if it is another program's."""
    try:
        packed = json.loads(text or "{}")[_NOTE]
    except (ValueError, KeyError, TypeError):
        return None
    return msgspec.json.decode(zlib.decompress(bytes.fromhex(packed)), type=Note)
