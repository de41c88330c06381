"""The emulated server without its connections: no I/O, and the time is an argument."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ...events import OrderedKey, Row, TableName
from .changes import Change, row_events, statement_event
from .gtids import Gtid
from .log import VERSIONS, Log, Vendor
from .schema import Schema
from .table import MemoryTable
from .transaction import MysqlTransaction

RowsByKey: TypeAlias = dict[tuple[TableName, OrderedKey], Row | None]
"""Rows of several tables; None for one that isn't there."""


class View(NamedTuple):
    """The tables as a transaction reads them."""

    tables: dict[TableName, tuple[MemoryTable, list[Row]]]
    end: tuple[str, int]
    """The position of the log that has the same."""
    gtids: str


class _Hidden(NamedTuple):
    """A transaction that is in the log, and that no view has yet."""

    until: float
    transactions: int
    """The number of those before it."""
    gtid: Gtid | None
    before: RowsByKey


class MysqlServer:
    """Tables, their log, and the account of replicas. Not thread-safe."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        server_id: int,
        user: str,
        password: str,
        log_name: str = "binlog",
        replica_of: MysqlServer | None = None,
        vendor: Vendor = "MariaDB",
        visible_seconds: float = 0.0,
    ) -> None:
        """`now` returns Unix seconds. With `replica_of`, each server has the other's transactions at once.
        New views have a transaction only `visible_seconds` after it is in the log, unless they wait for it.
        Raises ValueError if the other one has logged something already."""
        self.now: Final = now
        self.user: Final = user
        self.password: Final = password
        self.vendor: Final[Vendor] = vendor
        self.schema: Final[Schema] = Schema(vendor) if replica_of is None else replica_of.schema
        self.log: Final = Log(server_id, now, log_name, vendor)
        self._server_id = server_id
        self._visible_seconds = visible_seconds
        self._hidden: deque[_Hidden] = deque() if replica_of is None else replica_of._hidden
        if replica_of is not None:
            if replica_of.log.transactions:
                raise ValueError("a replica is to be made before its source has logged a transaction")
            for log in [replica_of.log, *replica_of.log.replicas]:
                log.replicas.append(self.log)
                self.log.replicas.append(log)

    def execute(self, statement: str, domain: int | None = 0) -> None:
        """Run a statement that changes definitions, and log it. Raises ValueError."""
        if not self.schema.uses(statement):
            query = self.schema.run(statement, self.now())
            self._hidden.clear()
            self.log.add([statement_event(query, self.vendor)], is_statement=True, domain=domain)

    def transaction(self, domain: int | None = 0) -> MysqlTransaction:
        return MysqlTransaction(self, nullcontext(), partial(self.commit, domain=domain))

    def commit(self, changes: Sequence[Change], domain: int | None = 0) -> None:
        """Apply and log the changes of rows of a transaction. Raises ValueError if a row isn't any more as it
        was read; nothing is changed then."""
        rows: RowsByKey = {}

        def present(name: TableName, key: OrderedKey) -> Row | None:
            place = name, key
            return rows[place] if place in rows else self.schema.tables[name].rows.get(key)

        for change in changes:
            name, after_key = change.name, change.after_key
            if self.schema.tables.get(name) is not change.table:
                raise ValueError(f"{'.'.join(name)} was changed by a statement meanwhile")
            is_moved = after_key != change.key and present(name, after_key) is not None
            if is_moved or present(name, change.key) != change.before:
                raise ValueError(f"another transaction changed a row of {'.'.join(name)} meanwhile")
            rows[name, change.key] = None
            rows[name, after_key] = change.after
        tables = self.schema.tables
        before: RowsByKey = {(name, key): tables[name].rows.get(key) for name, key in rows}
        count = self.log.transactions
        events = [*row_events(changes, self.vendor), self.log.xid()]
        gtid = self.log.add(events, is_statement=False, domain=domain)
        if self._visible_seconds:
            self._hidden.append(_Hidden(self.now() + self._visible_seconds, count, gtid, before))
        for (name, key), row in rows.items():
            _put(tables[name].rows, key, row)

    def view(self, *, waits: bool = False) -> View:
        """Return the tables for a transaction that begins now; with `waits`, once all commits have ended."""
        hidden, now = self._hidden, self.now()
        while hidden and (waits or hidden[0].until <= now):
            hidden.popleft()
        changed: dict[TableName, dict[OrderedKey, Row]] = {}
        for one in reversed(hidden):
            for (name, key), row in one.before.items():
                rows = changed.setdefault(name, dict(self.schema.tables[name].rows))
                _put(rows, key, row)
        end = self.log.end_after(hidden[0].transactions if hidden else self.log.transactions)
        tables = {
            name: (table, [*changed.get(name, table.rows).values()])
            for name, table in self.schema.tables.items()
        }
        return View(tables, end, str(self.log.gtids))

    def waits_for(self, gtids: str) -> bool:
        """Have the transactions with these GTIDs visible; return False if the log doesn't have them."""
        wanted = self.log.read_gtids(gtids)
        waited = [one for one in self._hidden if one.gtid is not None and one.gtid in wanted]
        while waited and self._hidden and self._hidden[0].transactions <= waited[-1].transactions:
            self._hidden.popleft()
        return self.log.gtids.has_all(wanted)

    def variables(self) -> Mapping[str, object]:
        """Return the server's variables."""
        variables: dict[str, object] = {
            "binlog_checksum": "CRC32",
            "binlog_expire_logs_seconds": 0,
            "binlog_format": "ROW",
            "binlog_row_image": "FULL",
            "binlog_row_metadata": "FULL",
            "log_bin": 1,
            "lower_case_table_names": 0,
            "max_prepared_stmt_count": 16382,
            "server_id": self._server_id,
            "version": VERSIONS[self.vendor],
        }
        if self.vendor == "MariaDB":
            return variables | {"gtid_binlog_pos": str(self.log.gtids)}
        return variables | {
            "binlog_row_value_options": "",
            "gtid_executed": str(self.log.gtids),
            "server_uuid": str(UUID(int=self._server_id)),
        }


def _put(rows: dict[OrderedKey, Row], key: OrderedKey, row: Row | None) -> None:
    if row is None:
        rows.pop(key, None)
    else:
        rows[key] = row
