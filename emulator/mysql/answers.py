"""The emulated server's answers to the statements of replicas, loads and checks.

A statement that isn't known here gets an error that quotes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, TypeAlias

from msgspec import Struct

from ...codec.mysql.tokens import NotUnderstood, Tokens, quoted
from ...dialects.mysql.zone import SAMPLES_QUERY
from ...errors import SinkError
from ...events import Row, Table
from .schema import Schema
from .select import Relation, select
from .server import MysqlServer, View
from .system import relation, show_create_table
from .table import MemoryTable

_UNKNOWN_STATEMENT: Final = 1064
_NO_SUCH_TABLE: Final = 1146
_UNKNOWN_VARIABLE: Final = 1193
_TABLE_DEF_CHANGED: Final = 1412
_YEAR_SECONDS: Final = 365 * 86400

_SETTINGS: Final = frozenset({
    "NAMES", "NET_WRITE_TIMEOUT", "WAIT_TIMEOUT", "TIME_ZONE", "SQL_MODE", "LOCK_WAIT_TIMEOUT",
    "IDLE_TRANSACTION_TIMEOUT", "SQL_LOG_BIN", "AUTOCOMMIT",
    "SHOW_GIPK_IN_CREATE_TABLE_AND_INFORMATION_SCHEMA",
})  # fmt: skip
"""Settings of a session; they change no answer, as texts are UTF-8 and times are UTC."""
_SHOW_VARIABLES: Final = re.compile(
    r"SHOW (?:GLOBAL )?(?:VARIABLES|STATUS) (?:LIKE '([^']*)'|WHERE Variable_name IN \(([^)]*)\))", re.I
)
_SHOW_TABLE: Final = re.compile(r"SHOW CREATE TABLE (.+)", re.I | re.S)


class Refused(Exception):
    """An error of the protocol."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


class Answer(Struct, frozen=True):
    """Rows with the names of their columns; nothing but success without names."""

    names: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    table: Table | None = None
    """The table of the columns, for rows of a table of a user."""


_DONE: Final = Answer()
_STATUS: Final = ("File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB")
Handle: TypeAlias = Callable[[str, re.Match[str]], Answer]


class Answers:
    """Answers to one session. Not thread-safe."""

    def __init__(self, server: MysqlServer, account: str) -> None:
        self._server = server
        self._account = account
        self._view: View | None = None
        """The tables as of START TRANSACTION; None outside of a transaction."""
        self._locked: View | None = None
        """The tables as of FLUSH TABLES WITH READ LOCK; None without it. To this session nothing seems to be
        committed while it has the lock."""
        self.variables: dict[str, str] = {}
        """Variables of the user, without the @, in small letters."""

    @property
    def _is_mariadb(self) -> bool:
        return self._server.vendor == "MariaDB"

    @property
    def _schema(self) -> Schema:
        return self._server.schema

    def to(self, sql: str) -> Answer:
        """Return the answer to a statement. Raises Refused."""
        sql = sql.strip().removesuffix(";")
        if sql == SAMPLES_QUERY.strip():
            now = int(self._server.now())
            return Answer(("moment", "offset"), [(now - 2 * _YEAR_SECONDS, 0), (now + 2 * _YEAR_SECONDS, 0)])
        try:
            return self._answer(sql, Tokens(sql))
        except (NotUnderstood, ValueError) as what:
            raise Refused(
                _UNKNOWN_STATEMENT, f"the emulated server has no answer to this statement ({what}): {sql}"
            ) from None

    def _answer(self, sql: str, tokens: Tokens) -> Answer:
        first = tokens.next
        match first.value:
            case "SELECT" if not re.search(r"\sFROM\s", sql, re.I):
                tokens.take()
                return self._scalars(tokens)
            case "SELECT":
                return self._select(tokens)
            case "(":
                return self._union(tokens)
            case "EXPLAIN":
                return self._explained(tokens)
            case "SET":
                tokens.take()
                return self._set(tokens)
            case "SHOW":
                return self._show(sql)
            case "START":
                self._view = self._locked or self._server.view()
                return _DONE
            case "FLUSH" | "UNLOCK" if not self._is_mariadb:
                self._locked = self._server.view(waits=True) if first.value == "FLUSH" else None
                return _DONE
            case "ROLLBACK" | "COMMIT":
                tokens.take()
                if tokens.next.kind == "end":
                    self._view = None
                return _DONE
            case "SAVEPOINT":
                return _DONE
            case "XA":
                return Answer(("formatID", "gtrid_length", "bqual_length", "data"))
        raise NotUnderstood(first.text)

    # --- rows ------------------------------------------------------------------------------------

    def _find(self, schema: str, name: str) -> Relation:
        if schema.lower() == "information_schema":
            return relation(self._schema, name)
        table = self._table(schema, name)
        names = tuple([column.name for column in table.table.columns])
        rows = [*table.rows.values()] if self._view is None else self._view.tables[schema, name][1]
        return Relation(names, rows, table.table)

    def _table(self, schema: str, name: str) -> MemoryTable:
        table = self._schema.tables.get((schema or self._schema.current, name))
        if table is None:
            raise Refused(_NO_SUCH_TABLE, f"Table '{schema}.{name}' doesn't exist")
        if self._view is not None:
            before = self._view.tables.get((schema, name))
            if before is None or before[0].number != table.number:
                raise Refused(_TABLE_DEF_CHANGED, "Table definition has changed, please retry transaction")
        return table

    def _select(self, tokens: Tokens) -> Answer:
        selected = select(tokens, self._find)
        if tokens.next.kind not in ("end", "mark"):
            raise tokens.unexpected()
        return Answer(selected.names, selected.rows, selected.table)

    def _union(self, tokens: Tokens) -> Answer:
        """Answer (SELECT ..) UNION ALL (SELECT ..)."""
        rows: list[Row] = []
        names: tuple[str, ...] = ()
        while True:
            tokens.expect("(")
            answer = self._select(tokens)
            tokens.expect(")")
            rows += answer.rows
            names = names or answer.names
            if not tokens.accept("UNION", "ALL"):
                return Answer(names, rows)

    def _explained(self, tokens: Tokens) -> Answer:
        tokens.take()
        if tokens.accept("FORMAT"):
            tokens.expect("=")
            tokens.take()
        names = ("id", "select_type", "table", "type", "possible_keys", "key", "key_len", "ref")
        count = len(self._select(tokens).rows)
        row = (1, "SIMPLE", "", "range", "PRIMARY", "PRIMARY", "", None, count, "")
        return Answer((*names, "rows", "Extra"), [row])

    # --- settings --------------------------------------------------------------------------------

    def _scalars(self, tokens: Tokens) -> Answer:
        names, values = [], []
        while True:
            start = tokens.next
            values.append(self._scalar(tokens))
            names.append(tokens.text_since(start))
            if not tokens.accept(","):
                break
        if tokens.next.kind != "end":
            raise tokens.unexpected()
        return Answer(tuple(names), [tuple(values)])

    def _scalar(self, tokens: Tokens) -> object:
        token = tokens.take()
        name = token.value
        if name == "@@GLOBAL":
            tokens.expect(".")
            name = f"@@{tokens.take().value}"
        if name.startswith("@@"):
            variables = self._server.variables()
            if (value := variables.get(name[2:].lower())) is None:
                raise Refused(_UNKNOWN_VARIABLE, f"Unknown system variable '{name[2:].lower()}'")
            return value
        match name:
            case "CURRENT_USER":
                tokens.expect("(")
                tokens.expect(")")
                return self._account
            case "UNIX_TIMESTAMP":
                tokens.expect("(")
                tokens.skip_to_closing()
                return Decimal(f"{self._server.now():.6f}")
            case "BINLOG_GTID_POS" if self._is_mariadb:
                tokens.expect("(")
                file = tokens.string()
                tokens.expect(",")
                offset = tokens.number()
                tokens.expect(")")
                return self._server.log.gtids_at(file, offset)
            case "WAIT_FOR_EXECUTED_GTID_SET" if not self._is_mariadb:
                tokens.expect("(")
                gtids = tokens.string()
                tokens.skip_to_closing()
                return int(not self._server.waits_for(gtids))
            case "1":
                return 1
        raise NotUnderstood(token.text)

    def _set(self, tokens: Tokens) -> Answer:
        if tokens.accept("SESSION", "TRANSACTION", "ISOLATION", "LEVEL"):
            return _DONE
        while True:
            token = tokens.take()
            is_variable = token.value.startswith("@")
            if not is_variable and token.value not in _SETTINGS:
                raise Refused(_UNKNOWN_VARIABLE, f"the emulated server has no setting {token.text}")
            tokens.accept("=")
            value = tokens.take()
            if is_variable:
                self.variables[token.value[1:].lower()] = value.value
            while tokens.accept("."):
                tokens.take()
            if not tokens.accept(","):
                break
        if tokens.next.kind != "end":
            raise tokens.unexpected()
        return _DONE

    # --- SHOW ------------------------------------------------------------------------------------

    def _show(self, sql: str) -> Answer:
        log = self._server.log
        if matched := _SHOW_TABLE.fullmatch(sql):
            table = self._table(*Tokens(matched[1]).qualified_name(""))
            try:
                statement = show_create_table(table, self._server.vendor)
                return Answer(("Table", "Create Table"), [(table.table.name, statement)])
            except SinkError as error:
                raise NotUnderstood(str(error)) from None
        if matched := _SHOW_VARIABLES.fullmatch(sql):
            return Answer(("Variable_name", "Value"), self._shown(matched[1], matched[2]))
        match " ".join(sql.upper().split()):
            case "SHOW GRANTS":
                name, _, host = self._account.partition("@")
                granted = f"GRANT ALL PRIVILEGES ON *.* TO {quoted(name)}@{quoted(host)}"
                return Answer((f"Grants for {self._account}",), [(granted,)])
            case "SHOW BINARY LOGS":
                return Answer(
                    ("Log_name", "File_size"), [(name, len(data)) for name, data in log.files.items()]
                )
            case "SHOW MASTER STATUS" if self._is_mariadb:
                return Answer(_STATUS, [(*log.end, "", "")])
            case "SHOW BINARY LOG STATUS" if not self._is_mariadb:
                end, gtids = log.end, str(log.gtids)
                if self._locked is not None:
                    end, gtids = self._locked.end, self._locked.gtids
                return Answer((*_STATUS, "Executed_Gtid_Set"), [(*end, "", "", gtids)])
            case "SHOW ALL SLAVES STATUS" | "SHOW REPLICA STATUS":
                return Answer(("Connection_name",))
        raise NotUnderstood("SHOW")

    def _shown(self, pattern: str | None, listed: str | None) -> list[Row]:
        known = dict(self._server.variables())
        if self._is_mariadb:
            file, offset = self._server.log.end if self._view is None else self._view.end
            known |= {"Binlog_snapshot_file": file, "Binlog_snapshot_position": offset}
        if listed is not None:
            wanted = {name.strip(" '").lower() for name in listed.split(",")}
            return [(name, str(value)) for name, value in known.items() if name.lower() in wanted]
        like = re.escape(pattern or "").replace("%", ".*").replace("_", ".")
        return [(name, str(value)) for name, value in known.items() if re.fullmatch(like, name, re.I)]
