"""A function for foreachBatch that reads the source once for all tables."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from .typed_tables import TypedTables


def by_table(
    write: Callable[[TypedTables, int], object], *, invalid_dates: str = "fail"
) -> Callable[[DataFrame, int], None]:
    """Return a function for foreachBatch that calls `write` with a batch's typed tables and its number.

    The batch is kept while `write` runs, so that the source is read once however many frames are used.
    """

    def each(batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            write(TypedTables(batch, invalid_dates=invalid_dates), number)
        finally:
            batch.unpersist()

    return each
