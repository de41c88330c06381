"""A feed's own tables in a MySQL target: its checkpoint, and the progress of a schema change."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from ...events import Ddl, TableName
from ..applied import APPLIED_TABLE, Applied
from ..applied_rows import AppliedRows
from ..database import CHECKPOINT_TABLE
from ..statement import quoted
from . import text as text
from .session import MySqlSession

INTENT_TABLE: Final = "tidemill_ddl"
"""One row per feed while auto-committing statements run that the checkpoint doesn't cover yet."""

_FEED: Final = "feed VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY"
_TEXT: Final = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
_HOME_TABLES: Final = {
    CHECKPOINT_TABLE: f"{_FEED}, ts BIGINT NOT NULL, checkpoint {_TEXT}",
    INTENT_TABLE: f"{_FEED}, query {_TEXT}, intent {_TEXT}",
    APPLIED_TABLE: (
        "feed VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, first_ts BIGINT NOT NULL, "
        "applied LONGTEXT CHARACTER SET ascii NOT NULL, PRIMARY KEY (feed, first_ts)"
    ),
}


class Intent(Struct, frozen=True):
    """Progress of the changes by one statement of the source."""

    statement: str
    """Position of the statement in the source's log, or its commit ts; the commit ts of a binlog's statement
    may be another after a restart."""
    done: tuple[str, ...] = ()
    """Changes that are applied; what marked them may still be there."""
    doing: str = ""
    """The change that may have run."""
    comment: str = ""
    """Comment of the altered table before a marker replaced it."""
    created: TableName | None = None
    """The source's table whose copy is created, by the definition that the source has just then."""
    number: int = 0
    """`Ddl.shared`: the row of a table that several feeds write into stays, as the record of what is done."""


class MySqlAppliedRows(AppliedRows):
    """Records of what parallel workers of one feed applied after its checkpoint."""

    def load(self) -> list[Applied]:
        """Return all records. A SQL transaction of a lost connection that may add one has ended then: it
        locks its record or the checkpoint's row before it changes anything else."""
        self._session.execute("START TRANSACTION")
        self._session.rows(f"SELECT * FROM {self._checkpoints} WHERE feed={self._feed} FOR UPDATE")
        records = self.read(" FOR UPDATE")
        self._session.execute("COMMIT")
        return records


class Home:
    """One feed's tables in `schema`."""

    is_consistent = True
    """False while the target may have changes after its checkpoint."""

    def __init__(self, session: MySqlSession, schema: str, feed: str) -> None:
        self._session = session
        self._schema = schema
        self._feed = quoted(feed)
        self.name = text.name(schema)
        self.checkpoints = f"{self.name}.{CHECKPOINT_TABLE}"
        self.applied = MySqlAppliedRows(session, self.name, self.checkpoints, feed)
        self._intents = f"{self.name}.{INTENT_TABLE}"
        self.own_name = f"{INTENT_TABLE}_{sha256(feed.encode()).hexdigest()[:16]}"
        """Prefix of the names of tables that exist only while this feed renames tables."""
        self.is_intended = False
        """True while a schema change may have run that the checkpoint doesn't cover yet."""

    def create(self) -> None:
        """Create missing tables; the right to create is needed only then."""
        self._session.create_schema(self._schema)
        query = f"SELECT table_name FROM information_schema.tables WHERE table_schema={quoted(self._schema)}"
        known = {name for (name,) in self._session.rows(query)}
        for table, columns in _HOME_TABLES.items():
            if table not in known:
                self._session.execute(
                    f"CREATE TABLE IF NOT EXISTS {self.name}.{table} ({columns}) ENGINE=InnoDB"
                )

    def load_checkpoint(self, *, locked: bool = False) -> str | None:
        lock = " FOR UPDATE" if locked else ""
        rows = self._session.rows(f"SELECT checkpoint FROM {self.checkpoints} WHERE feed={self._feed}{lock}")
        return rows[0][0] if rows else None

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        """Store the checkpoint and delete the intent; return False if the stored one isn't of
        `previous_ts`."""
        saved = self._replace_checkpoint(previous_ts, ts, content)
        if self.is_intended:
            self._session.execute(f"DELETE FROM {self._intents} WHERE feed={self._feed}")
            self.is_intended = False
        return saved

    def _replace_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        table, key, content = self.checkpoints, self._feed, quoted(content)
        if previous_ts is None:
            absent = f"NOT EXISTS (SELECT 1 FROM {table} WHERE feed={key})"
            saved = self._session.execute(
                f"INSERT INTO {table} SELECT {key},{ts},{content} FROM DUAL WHERE {absent}"
            )
        else:
            saved = self._session.execute(
                f"UPDATE {table} SET ts={ts},checkpoint={content} WHERE feed={key} AND ts={previous_ts}"
            )
        return saved == 1

    def intent(self, ddl: Ddl) -> Intent:
        """Return the progress of the changes by that statement; an empty one if none may have run."""
        if ddl.shared is not None:
            number = ddl.shared
            return self._last_shared(ddl) or Intent(f"change {number} of {ddl.full_name}", number=number)
        statement = ddl.logged_at or str(ddl.commit_ts)
        rows = self._session.rows(f"SELECT intent FROM {self._intents} WHERE feed={self._feed}")
        if rows:
            intent = msgspec.json.decode(rows[0][0], type=Intent)
            if intent.statement == statement:
                self.is_intended = True
                return intent
        return Intent(statement)

    def has_shared(self, ddl: Ddl) -> bool:
        """Return True if a shared change was begun, or a later one of its table."""
        return self._last_shared(ddl) is not None

    def note_shared(self, ddl: Ddl) -> None:
        """Store that a shared table is created, if that isn't known."""
        if not self.has_shared(ddl):
            self.intend(ddl, self.intent(ddl))

    def _last_shared(self, ddl: Ddl) -> Intent | None:
        """Return the progress of a shared change, or of a later one of its table; None if there is none."""
        key = quoted(_shared_key(ddl))
        rows = self._session.rows(f"SELECT intent FROM {self._intents} WHERE feed={key}")
        intent = msgspec.json.decode(rows[0][0], type=Intent) if rows else None
        return intent if intent is not None and intent.number >= (ddl.shared or 0) else None

    def intend(self, ddl: Ddl, intent: Intent) -> None:
        """Store the progress durably; `ddl` is the change that it is about."""
        if ddl.shared is None:
            self._store(ddl.query, intent)
        else:
            self._replace(quoted(_shared_key(ddl)), ddl.query, intent)

    def intend_creation(self, name: TableName) -> None:
        """Store durably that a table is created."""
        self._store("", Intent("", created=name))

    def unfinished_creation(self) -> TableName | None:
        """Return the table that a process was creating when it ended; no checkpoint covers it."""
        rows = self._session.rows(f"SELECT intent FROM {self._intents} WHERE feed={self._feed}")
        if not rows or (name := msgspec.json.decode(rows[0][0], type=Intent).created) is None:
            return None
        self.is_intended = True
        return name

    def _store(self, query: str, intent: Intent) -> None:
        self._replace(self._feed, query, intent)
        self.is_intended = True

    def _replace(self, key: str, query: str, intent: Intent) -> None:
        values = ",".join(map(quoted, (query, msgspec.json.encode(intent).decode())))
        self._session.execute(f"REPLACE INTO {self._intents} VALUES ({key},{values})")


def _shared_key(ddl: Ddl) -> str:
    """Return the key of the intents of a table that several feeds write into; no feed has such a name."""
    return f"table {ddl.full_name}"
