"""Sessions for commands, without the output of Spark's JVM."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Final

from ...errors import ConfigError, TidemillError
from ..run.errors import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG: Final = "spark.log"
"""Name of Spark's log in a feed's data directory."""
_QUIET: Final = {
    "spark.log.level": "OFF",
    "spark.sql.streaming.noDataProgressEventInterval": "500ms",  # a query reports soon that it found nothing
}
_WRONG: Final = re.compile("Error|Exception")
_SAID_LINES: Final = 2


def quiet_session(
    name: str,
    master: str,
    config: Mapping[str, str] | None = None,
    log: Path | None = None,
    lakes: Iterable[str] = (),
) -> SparkSession:
    """Start a session with lakes; output of the JVM and its workers is appended to `log`, or dropped.

    Raises ConfigError if there is no session to be had, or a package is missing.
    """
    try:
        from .session import session
    except ImportError as error:
        raise ConfigError(f"Spark needs: pip install 'tidemill[spark]' ({error})") from error
    with _opened(log) as output:
        begin = output.seek(0, 2)
        try:
            return session(name, master, {**_QUIET, **(config or {})}, output, lakes)
        except TidemillError:
            raise
        except Exception as error:
            output.seek(begin)
            raise ConfigError(_sentence(error, master, output.read().decode(errors="replace"))) from error


@contextmanager
def _opened(log: Path | None) -> Iterator[IO[bytes]]:
    if log is None:
        with TemporaryFile() as output:
            yield output
    else:
        with log.open("ab+") as output:
            yield output


def _sentence(error: Exception, master: str, said: str) -> str:
    """Describe a failed start, with Java's last output if it exited."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if "JAVA_GATEWAY_EXITED" in str(error) and lines:
        first = next((at for at, line in enumerate(lines) if _WRONG.search(line)), 0)
        return f"Spark didn't start with master {master}: {' '.join(lines[first : first + _SAID_LINES])}"
    return str(explain(error, f"master {master}"))
