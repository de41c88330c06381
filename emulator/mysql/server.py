"""The emulated server without its connections: no I/O, and the time is an argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Final

from ...events import OrderedKey, Row, TableName
from .changes import Change, row_events, statement_event
from .log import VERSION, Log
from .schema import Schema
from .transaction import MysqlTransaction


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
    ) -> None:
        """`now` returns Unix seconds. With `replica_of`, each server has the other's transactions at once.
        Raises ValueError if the other one has logged something already."""
        self.now: Final = now
        self.user: Final = user
        self.password: Final = password
        self.schema: Final[Schema] = Schema() if replica_of is None else replica_of.schema
        self.log: Final = Log(server_id, now, log_name)
        self._server_id = server_id
        if replica_of is not None:
            if replica_of.log.gtid:
                raise ValueError("a replica is to be made before its source has logged a transaction")
            for log in [replica_of.log, *replica_of.log.replicas]:
                log.replicas.append(self.log)
                self.log.replicas.append(log)

    def execute(self, statement: str) -> None:
        """Run a statement that changes definitions, and log it. Raises ValueError."""
        if not self.schema.uses(statement):
            query = self.schema.run(statement, self.now())
            self.log.add([statement_event(query)], is_statement=True)

    def transaction(self) -> MysqlTransaction:
        return MysqlTransaction(self, nullcontext(), self.commit)

    def commit(self, changes: Sequence[Change]) -> None:
        """Apply and log the changes of rows of a transaction. Raises ValueError if a row isn't any more as it
        was read; nothing is changed then."""
        rows: dict[tuple[TableName, OrderedKey], Row | None] = {}

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
        self.log.add([*row_events(changes), self.log.xid()], is_statement=False)
        for (name, key), row in rows.items():
            table = self.schema.tables[name]
            if row is None:
                table.rows.pop(key, None)
            else:
                table.rows[key] = row

    def variables(self) -> Mapping[str, object]:
        """Return the server's variables."""
        return {
            "binlog_checksum": "CRC32",
            "binlog_expire_logs_seconds": 0,
            "binlog_format": "ROW",
            "binlog_row_image": "FULL",
            "binlog_row_metadata": "FULL",
            "gtid_binlog_pos": self.log.gtid,
            "log_bin": 1,
            "lower_case_table_names": 0,
            "max_prepared_stmt_count": 16382,
            "server_id": self._server_id,
            "version": VERSION,
        }
