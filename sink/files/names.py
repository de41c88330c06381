"""Names in a folder of files by table and date, as Hive, Spark, DuckDB and Arrow read them as partitions.

table=shop.orders/date=2026-11-21/<first commit ts>-<last>-<origin>.parquet
table=ddl/date=…/…                  schema changes
_tidemill/                          not for readers
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from ...errors import SinkError
from ...events import Ts, physical_ms, timestamp

HIDDEN: Final = "_tidemill"
"""Folder of the feed's own; readers skip names that begin with an underscore."""
DDL_FOLDER: Final = "table=ddl"
"""Folder of schema changes; no table has this name, as theirs contain a dot."""
DAY_MS: Final = 86_400_000
_MOST_BYTES: Final = 200
"""Longest name of a table's folder. File systems take 255 bytes; writers add a prefix and a suffix of theirs
to it while they make files."""
_DIGEST_DIGITS: Final = 32


def table_folder(schema: str, name: str) -> str:
    """Return a table's folder, with other characters than letters and digits as %XX. A long name is cut, and
    ends in a digest of the whole name."""
    folder = f"table={_escaped(schema)}.{_escaped(name)}"
    if len(folder) <= _MOST_BYTES:
        return folder
    digest = sha256(folder.encode()).hexdigest()[:_DIGEST_DIGITS]
    return f"{folder[: _MOST_BYTES - _DIGEST_DIGITS - 1]}~{digest}"


def _escaped(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")


def check_unused(target: object, names: Iterable[str], other: str = "name another directory") -> None:
    """Raise SinkError if a target without a checkpoint holds names besides the feed's own."""
    if found := min((name for name in names if name != HIDDEN), default=""):
        raise SinkError(f"{target} holds {found} already: empty it, or {other}")


def day_of(ts: Ts) -> int:
    """Return the day of a commit ts in UTC, counted from 1970."""
    return physical_ms(ts) // DAY_MS


def date_of(ts: Ts) -> str:
    """Return the day of a commit ts in UTC, in ISO 8601."""
    return timestamp(ts).date().isoformat()


def file_name(first: Ts, last: Ts, origin: str, suffix: str) -> str:
    """Return digits of equal length, so that names sort in the order of the changes."""
    return f"{first:020}-{last:020}-{origin}{suffix}"
