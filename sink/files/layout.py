"""The protocol of layouts, which name the files, and the layout by table and date.

    table=shop.orders/date=2026-11-21/<first commit ts>-<last>-<origin>.parquet
    table=ddl/date=…/…                  schema changes
    _tidemill/                          not for readers

Hive, Spark, DuckDB and Arrow read these folders as partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import quote

from ...errors import SinkError
from ...events import LOGICAL_BITS, Ddl, Table, Ts, physical_ms, timestamp
from .formats import Group
from .store import Store

if TYPE_CHECKING:
    from .ledger import State

HIDDEN: Final = "_tidemill"
"""Folder of the feed's own; readers skip names that begin with an underscore."""
DDL_FOLDER: Final = "table=ddl"
"""Folder of schema changes; no table has this name, as theirs contain a dot."""
_DAY_MS: Final = 86_400_000
DAY: Final = _DAY_MS << LOGICAL_BITS
"""A day as a difference of commit timestamps."""
_MOST_BYTES: Final = 200
"""Longest name of a table's folder. File systems take 255 bytes; writers add a prefix and a suffix of theirs
to it while they make files."""
_DIGEST_DIGITS: Final = 32
_DATED: Final = re.compile(r"date=(\d{4}-\d\d-\d\d)/[^/]+")
"""A file below its table's folder: the day."""


class DatedFolder(NamedTuple):
    """A folder of files of one day."""

    name: str
    date: str


class FileLayout(Protocol):
    """Names of the files of one sink. Called only by its sink."""

    has_statements: bool
    """True if schema changes are rows of files; False if `note` describes them."""
    own_names: frozenset[str]
    """Names at the top of a store that may be there before the first commit."""
    checks_statements: bool
    """True if `check` decides about a schema change, by the tables as of all changes before it."""

    def start(self) -> None:
        """Forget everything since the last commit: it comes again."""

    def check(self, ddl: Ddl) -> None:
        """Raise NotReproducible if the rows after a schema change aren't known, and SinkError if it can't be
        followed. Raises as Store does."""

    def fit(self, group: Group, name: str) -> None:
        """Make a staged file of another process fit to those of others, before their commit. May be repeated.
        Raises as Store does."""

    def path(self, group: Group, first: Ts, last: Ts, origin: str, suffix: str) -> str:
        """Return the name of a new file; empty if it stays hidden. `origin` is unique in the prefix."""
        ...

    def note(self, ddl: Ddl) -> None:
        """Note a schema change."""

    def definitions(self) -> dict[str, str]:
        """Return small objects that describe the tables of a commit, by name."""
        ...

    def marks(self, ts: Ts | None) -> dict[str, str]:
        """Return small objects that announce the files of a commit, by name. All changes up to `ts` are
        visible then; None if that isn't known."""
        ...

    def announce(self, state: State) -> None:
        """Make the published files of a saved state known to readers; nothing happens if they are. Raises as
        Store does."""

    def dated(self, store: Store) -> Iterator[DatedFolder]:
        """Yield the folders of rows by day, more than once each. Raises as Store does."""
        ...

    def close(self) -> None:
        """Release what isn't the store's. Safe to repeat; used again, it is opened again."""


class TablesLayout:
    """Folders by table and date."""

    has_statements = True
    own_names = frozenset({HIDDEN})
    checks_statements = False

    def start(self) -> None:
        pass

    def check(self, ddl: Ddl) -> None:
        pass

    def close(self) -> None:
        pass

    def fit(self, group: Group, name: str) -> None:
        pass

    def path(self, group: Group, first: Ts, last: Ts, origin: str, suffix: str) -> str:
        return f"{self.folder(group[0])}/date={date_of(first)}/{file_name(first, last, origin, suffix)}"

    def folder(self, table: Table | None) -> str:
        """Return the folder of a table's changes, or of schema changes."""
        return DDL_FOLDER if table is None else table_folder(table.schema, table.name)

    def note(self, ddl: Ddl) -> None:
        pass

    def definitions(self) -> dict[str, str]:
        return {}

    def marks(self, ts: Ts | None) -> dict[str, str]:
        return {} if ts is None else {f"{HIDDEN}/metadata": checkpoint_text(ts)}

    def announce(self, state: State) -> None:
        pass

    def dated(self, store: Store) -> Iterator[DatedFolder]:
        for folder in store.entries():
            if folder.startswith("table=") and folder != DDL_FOLDER:
                for name in store.names(folder):
                    if match := _DATED.fullmatch(name):
                        yield DatedFolder(f"{folder}/date={match[1]}", match[1])


def table_folder(schema: str, name: str) -> str:
    """Return a table's folder, with other characters than letters and digits as %XX. A long name is cut, and
    ends in a digest of the whole name."""
    return folder_of(schema, name, "table=")


def folder_of(schema: str, name: str, prefix: str = "") -> str:
    """Return the name of a table's folder after a prefix."""
    folder = f"{prefix}{_escaped(schema)}.{_escaped(name)}"
    if len(folder) <= _MOST_BYTES:
        return folder
    digest = sha256(folder.encode()).hexdigest()[:_DIGEST_DIGITS]
    return f"{folder[: _MOST_BYTES - _DIGEST_DIGITS - 1]}~{digest}"


def _escaped(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")


def check_unused(target: object, names: Iterable[str], own: frozenset[str]) -> None:
    """Raise SinkError if a target without a checkpoint holds names besides the feed's own."""
    if first := min((name for name in names if name not in own), default=""):
        raise SinkError(f"{target} holds {first} already: empty it, or give another prefix")


def day_of(ts: Ts) -> int:
    """Return the day of a commit ts in UTC, counted from 1970."""
    return physical_ms(ts) // _DAY_MS


def date_of(ts: Ts) -> str:
    """Return the day of a commit ts in UTC, in ISO 8601."""
    return timestamp(ts).date().isoformat()


def file_name(first: Ts, last: Ts, origin: str, suffix: str) -> str:
    """Return digits of equal length, so that names sort in the order of the changes."""
    return f"{first:020}-{last:020}-{origin}{suffix}"


def checkpoint_text(ts: Ts) -> str:
    """Return the content of the object that says up to which ts all changes are visible."""
    return f'{{"checkpoint-ts":{ts}}}'
