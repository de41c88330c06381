"""Streaming queries that may be started from any thread.

Spark looks for the format of a `writeStream` only in the calling thread's active session, and a new thread
has none. So the session of the frame is made the active one before its query starts.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

_start = DataStreamWriter.start


def _start_with_session(self: DataStreamWriter, *arguments: Any, **options: Any) -> Any:
    self._spark._jvm.SparkSession.setActiveSession(self._spark._jsparkSession)  # type: ignore[union-attr]
    return _start(self, *arguments, **options)


def start_in_any_thread() -> None:
    """Let queries of this process be started from any thread. May be called again."""
    DataStreamWriter.start = _start_with_session  # type: ignore[method-assign]
