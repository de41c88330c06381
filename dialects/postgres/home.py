"""A feed's own tables in a PostgreSQL target: its checkpoint, and what parallel workers applied after it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from ..applied import APPLIED_TABLE, Applied
from ..applied_rows import AppliedRows
from ..database import CHECKPOINT_TABLE
from ..statement import ANY, Statement
from ..worker import Start
from .session import PostgresSession
from .tables import CREATION_LOCK, Tables
from .text import name


class PostgresAppliedRows(AppliedRows):
    """Records of what parallel workers of one feed applied after its checkpoint.

    Each SQL transaction of a worker shares an advisory lock of the feed from its first statement on.
    """

    _session: PostgresSession

    def __init__(self, session: PostgresSession, schema: str, checkpoints: str, feed: str) -> None:
        super().__init__(session, schema, checkpoints, feed)
        digest = sha256(f"tidemill {self._table} {feed}".encode()).digest()
        self._lock = int.from_bytes(digest[:8], "big", signed=True)

    def load(self) -> list[Applied]:
        self._session.defer("BEGIN")
        self._session.rows(f"SELECT pg_advisory_xact_lock({self._lock})")
        records = self.read()
        self._session.commit()
        return records

    def statements(self, start: Start) -> Iterator[Statement]:
        yield Statement(f"SELECT pg_advisory_xact_lock_shared({self._lock})", ANY)
        yield from super().statements(start)


class Home:
    """One feed's tables in `schema`."""

    def __init__(self, session: PostgresSession, tables: Tables, schema: str, feed: str) -> None:
        self._session = session
        self._tables = tables
        self._schema = schema
        self._feed = feed
        own = name(schema, f"schema {schema}")
        self.checkpoints = f"{own}.{CHECKPOINT_TABLE}"
        self._applied_table = f"{own}.{APPLIED_TABLE}"
        self.applied = PostgresAppliedRows(session, own, self.checkpoints, feed)

    def create(self) -> None:
        """Create schema and tables if they are missing; the right to create is needed only then."""
        if self.is_there() and self.is_there(APPLIED_TABLE):
            return
        self._session.defer("BEGIN")
        self._session.rows(f"SELECT pg_advisory_xact_lock({CREATION_LOCK})")
        self._tables.create_schema(self._schema)
        self._session.execute(
            f"CREATE TABLE IF NOT EXISTS {self.checkpoints} "
            "(feed text PRIMARY KEY, ts bigint NOT NULL, checkpoint text NOT NULL)"
        )
        self._session.execute(
            f"CREATE TABLE IF NOT EXISTS {self._applied_table} (feed text NOT NULL, "
            "first_ts bigint NOT NULL, applied text NOT NULL, PRIMARY KEY (feed, first_ts))"
        )
        self._session.commit()

    def is_there(self, table: str = CHECKPOINT_TABLE) -> bool:
        query = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = %s"
        return bool(self._session.rows(query, self._schema, table))

    def load_checkpoint(self, *, locked: bool = False) -> str | None:
        lock = " FOR UPDATE" if locked else ""
        query = f"SELECT checkpoint FROM {self.checkpoints} WHERE feed = %s{lock}"
        rows = self._session.rows(query, self._feed)
        return rows[0][0] if rows else None

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        """Store the checkpoint; return False if the stored one isn't of `previous_ts`."""
        if previous_ts is None:
            insert = f"INSERT INTO {self.checkpoints} VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
            return self._session.execute(insert, self._feed, ts, content) == 1
        update = f"UPDATE {self.checkpoints} SET ts = %s, checkpoint = %s WHERE feed = %s AND ts = %s"
        return self._session.execute(update, ts, content, self._feed, previous_ts) == 1
