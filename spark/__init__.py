"""tidemill on Spark: changes and snapshots as DataFrames, and DataFrames into sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ..errors import ConfigError
from .run.options import MASTER

if TYPE_CHECKING:
    from threading import Event

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["register", "session", "supervise"]


def register(spark: SparkSession) -> None:
    """Let `spark` read and write format("tidemill"). Raises ConfigError if a package is missing.

    A batch may have the option filterPushdown if spark.sql.python.filterPushdown.enabled is already true.
    """
    try:
        from .data_source import register
    except ImportError as error:
        raise _missing(error) from error
    register(spark)


def session(
    name: str = "tidemill",
    master: str = MASTER,
    config: Mapping[str, str] | None = None,
    *,
    lakes: Iterable[str] = (),
) -> SparkSession:
    """Return a session with the data source registered: the active one, or a new one.

    `config` overrides tidemill's defaults, which suit small batches on few cores. With `lakes=["delta"]`
    it reads and writes Delta tables: Spark fetches the jars from Maven Central, unless `config` has
    `spark.jars`, which then has them. Raises ConfigError if there is no Java, a package is missing, `master`
    isn't valid, or for an unknown lake.
    """
    try:
        from .launch.session import session
    except ImportError as error:
        raise _missing(error) from error
    return session(name, master, config, lakes=lakes)


def supervise(start: Callable[[], StreamingQuery], *, stopping: Event | None = None) -> None:
    """Run a query until it ends by itself, or until `stopping` is set, which stops it.

    `start` starts the query, with the same checkpointLocation each time; it is called from this thread. After
    an error that passes, such as a source or target that doesn't answer, the query is started again, with
    growing pauses. Raises the other errors as tidemill's, with Spark's as the cause.
    """
    try:
        from .launch.supervise import supervise
    except ImportError as error:
        raise _missing(error) from error
    supervise(start, stopping=stopping)


def _missing(error: ImportError) -> ConfigError:
    return ConfigError(f"Spark needs: pip install 'tidemill[spark]' ({error})")
