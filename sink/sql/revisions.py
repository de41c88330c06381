"""Keys, values and revisions in a table of the target, which several feeds share."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, TypeVar

from ...dialects.database import Database, StatementRejected
from ...errors import Retryable, TidemillError

REVISIONS_TABLE: Final = "tidemill_coordination"
_CLOSE_SECONDS: Final = 1.0
_ATTEMPTS: Final = 5
"""Maximum number of attempts at a SQL transaction that meets another one."""

T = TypeVar("T")


class SqlRevisions:
    """Has the methods of `sharding.shared_locks.Revisions`, over a connection of its own. Any thread.

    A row stays when its time has passed, so that no revision of a key is used again.
    """

    def __init__(self, target: Database) -> None:
        self._target = target
        self._tables = target.own_tables
        self._table = f"{target.own_tables.home}{REVISIONS_TABLE}"
        self._now = target.own_tables.unix_time
        self._is_connected = False
        self._lock = Lock()

    def get(self, key: str) -> tuple[bytes, int] | None:
        rows = self._do(
            lambda: self._query(
                f"SELECT value, revision FROM {self._table} "
                f"WHERE name=? AND (expires=0 OR expires>{self._now})",
                key,
            )
        )
        return (rows[0][0].encode(), int(rows[0][1])) if rows else None

    def list(self, prefix: str) -> dict[str, tuple[bytes, int]]:
        rows = self._do(
            lambda: self._query(
                f"SELECT name, value, revision FROM {self._table} "
                f"WHERE SUBSTR(name, 1, ?)=? AND (expires=0 OR expires>{self._now}) ORDER BY name",
                len(prefix),
                prefix,
            )
        )
        return {name: (value.encode(), int(revision)) for name, value, revision in rows}

    def put(self, key: str, value: bytes, revision: int, ttl_seconds: int = 0) -> int | None:
        expires = f"{self._now}+{ttl_seconds}" if ttl_seconds else "0"
        return self._do(lambda: self._replace(key, value.decode(), revision, expires))

    def delete(self, key: str, revision: int) -> bool:
        return self._do(lambda: self._replace(key, "", revision, "1")) is not None

    def _replace(self, key: str, value: str, revision: int, expires: str) -> int | None:
        self._target.begin()
        rows = self._query(
            f"SELECT revision, CASE WHEN expires=0 OR expires>{self._now} THEN 1 ELSE 0 END "
            f"FROM {self._table} WHERE name=?{self._tables.for_update}",
            key,
        )
        last = int(rows[0][0]) if rows else 0
        done = revision == (last if rows and rows[0][1] else 0)
        if done and rows:
            self._query(
                f"UPDATE {self._table} SET value=?, revision=?, expires={expires} WHERE name=?",
                value,
                last + 1,
                key,
            )
        elif done:
            self._query(
                f"INSERT INTO {self._table} (name, value, revision, expires) VALUES (?,?,1,{expires})",
                key,
                value,
            )
        self._target.commit()
        return last + 1 if done else None

    def _query(self, statement: str, *values: str | int | None) -> builtins.list[Any]:
        return list(self._tables.query(statement, *values))

    def _do(self, work: Callable[[], T]) -> T:
        """Do a piece of work, again if it meets another SQL transaction. Raises as `Database` does."""
        with self._lock:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._connect()
                    return work()
                except Exception as error:
                    self._close()
                    doing = f"coordinating shards in {self._table}"
                    explanation = (
                        error if isinstance(error, TidemillError) else self._target.explain(error, doing)
                    )
                    if isinstance(explanation, (Retryable, StatementRejected)) and attempt < _ATTEMPTS:
                        continue  # another feed has inserted the same key, or the connection was lost
                    if explanation is None or explanation is error:
                        raise
                    raise explanation from error
        raise AssertionError

    def _connect(self) -> None:
        if self._is_connected:
            return
        self._target.connect()
        self._is_connected = True
        if not self._tables.has(REVISIONS_TABLE):
            self._target.begin()
            self._tables.create(
                REVISIONS_TABLE,
                f"name {self._tables.name_type} PRIMARY KEY, value {self._tables.text_type} NOT NULL, "
                "revision BIGINT NOT NULL, expires BIGINT NOT NULL",
            )
            self._target.commit()

    def close(self) -> None:
        if self._lock.acquire(timeout=_CLOSE_SECONDS):  # else a thread waits for the server
            self._close()
            self._lock.release()

    def _close(self) -> None:
        self._is_connected = False
        self._target.close()
