"""Random histories of a schema: statements of several sessions, drawn from a seed and the server's answers.

The same seed gives the same statements on the same version of the server. A statement that the server
refuses, because a table is locked or a value doesn't convert, belongs to the history as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from ..events import Row
from .private_server import PrivateServer

_NAMES: Final = tuple(f"t{number}" for number in range(5))
_COLUMNS: Final = tuple(f"c{number}" for number in range(6))
CHARSETS: Final = ("utf8mb4", "latin1", "utf8mb3", "ucs2")
_TEXTS: Final = ("", "a", "Zürich", "x" * 12, "12", "-3.7", "2024-02-29", " pad ", "it's", "\\")
_TYPES: Final = (
    "TINYINT", "SMALLINT UNSIGNED", "INT", "BIGINT", "BIGINT UNSIGNED", "DECIMAL(12,3)", "DOUBLE", "FLOAT",
    "BIT(9)", "YEAR", "DATE", "TIME(2)", "DATETIME", "DATETIME(6)", "TIMESTAMP NULL", "CHAR(8)",
    "VARCHAR(20)", "VARCHAR(300)", "TEXT", "VARBINARY(16)", "BLOB", "ENUM('a','b','12')", "SET('a','b','c')",
)  # fmt: skip
_NUMBERS: Final = (0, 1, -1, 7, 100, 255, 65_000, 2_000_000_000, "1.25", "-0.5")
_MOMENTS: Final = ("2024-02-29 12:34:56.789", "1999-12-31", "2001-01-01 00:00:00")


class History:
    """Statements in `schema`, made one after the other by `advance`."""

    def __init__(
        self,
        server: PrivateServer,
        schema: str,
        seed: int,
        sessions: int = 3,
        *,
        spares: Collection[str] = (),
        charsets: Sequence[str] = CHARSETS,
    ) -> None:
        """`spares` are tables that no statement is about."""
        self._charsets = charsets
        self._spares = frozenset(spares)
        self._random = Random(seed)
        self._schema = schema
        self.log: list[str] = []
        """The statements so far, each with its session and the error that it met."""
        self._sessions = [server.connect(database=schema) for _ in range(sessions)]
        self._open = [False] * sessions
        for session in self._sessions:
            self._run(session, "SET lock_wait_timeout = 0, innodb_lock_wait_timeout = 0")
        self._changes: Sequence[tuple[int, Callable[[], str]]] = (
            (3, self._create), (1, self._create_like), (1, self._create_select), (1, self._drop),
            (1, self._truncate), (1, self._rename), (1, self._swap), (5, self._add_column),
            (2, self._drop_column), (5, self._modify), (2, self._rename_column), (1, self._swap_columns),
            (2, self._set_default), (1, self._convert), (2, self._change_key), (2, self._index),
            (1, self._option), (1, self._partition), (1, self._drop_partition),
        )  # fmt: skip

    def close(self) -> None:
        for session in self._sessions:
            session.close()

    def advance(self, statements: int) -> None:
        """Run statements, and end the open transactions after them."""
        random = self._random
        for _ in range(statements):
            number = random.randrange(len(self._sessions))
            if not self._tables():
                self._say(number, self._create())
            elif self._open[number] and random.random() < 0.4:
                self._end(number)
            elif random.random() < 0.3:
                weights, kinds = zip(*self._changes, strict=True)
                self._open[number] = False  # DDL commits
                self._say(number, random.choices(kinds, weights)[0]())
            else:
                if not self._open[number] and random.random() < 0.5:
                    self._open[number] = True
                    self._say(number, "BEGIN")
                self._say(number, self._rows())
        for number, is_open in enumerate(self._open):
            if is_open:
                self._end(number)

    def _end(self, number: int) -> None:
        self._open[number] = False
        self._say(number, self._random.choice(("COMMIT", "COMMIT", "ROLLBACK")))

    def _say(self, number: int, statement: str) -> None:
        if not statement:
            return
        try:
            self._run(self._sessions[number], statement)
        except pymysql.MySQLError as error:
            self.log.append(f"{number}: {statement}; -- {error.args[-1]}")
        else:
            self.log.append(f"{number}: {statement};")

    @staticmethod
    def _run(session: pymysql.Connection[Cursor], statement: str) -> list[Row]:
        with session.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    # --- what there is

    def _look(self, query: str) -> list[Row]:
        return self._run(self._sessions[0], query)

    def _tables(self) -> list[str]:
        where = f"table_schema = '{self._schema}' ORDER BY table_name"
        rows = self._look(f"SELECT table_name FROM information_schema.tables WHERE {where}")
        return [str(name) for (name,) in rows if name not in self._spares]

    def _table(self) -> str:
        return self._random.choice(self._tables())

    def _new_name(self) -> str:
        free = sorted(set(_NAMES) - set(self._tables()))
        return self._random.choice(free or _NAMES)

    def _columns(self, table: str) -> list[tuple[str, str]]:
        where = f"table_schema = '{self._schema}' AND table_name = '{table}' ORDER BY ordinal_position"
        query = f"SELECT column_name, data_type FROM information_schema.columns WHERE {where}"
        return [(str(name), str(kind)) for name, kind in self._look(query)]

    def _column(self, table: str) -> str:
        columns = [name for name, _ in self._columns(table) if name != "id"]
        return self._random.choice(columns or ["id"])

    def _new_column(self, table: str) -> str:
        free = sorted(set(_COLUMNS) - {name for name, _ in self._columns(table)})
        return self._random.choice(free or _COLUMNS)

    # --- rows

    def _value(self, kind: str) -> str:
        random = self._random
        if random.random() < 0.15:
            return "NULL"
        if kind in ("date", "datetime", "timestamp"):
            return f"'{random.choice(_MOMENTS)}'"
        if kind == "time":
            return random.choice(("'-10:11:12.34'", "'838:59:59'", "'00:00:01'"))
        if kind == "year":
            return random.choice(("1999", "2024", "0"))
        if kind in ("enum", "set"):
            return random.choice(("'a'", "'b'"))
        if kind in ("blob", "varbinary"):
            return f"x'{random.randbytes(random.randrange(9)).hex()}'"
        if kind in ("char", "varchar", "text"):
            return "'" + random.choice(_TEXTS).replace("\\", "\\\\").replace("'", "''") + "'"
        return str(random.choice(_NUMBERS))

    def _rows(self) -> str:
        random = self._random
        table = self._table()
        columns = self._columns(table)
        ids = random.sample(range(30), random.randint(1, 6))
        some = ", ".join(map(str, ids))
        what = random.random()
        if what < 0.55:
            names = ", ".join(name for name, _ in columns)
            rows = ", ".join(
                f"({', '.join(str(id_) if name == 'id' else self._value(kind) for name, kind in columns)})"
                for id_ in ids
            )
            verb = random.choice(("INSERT IGNORE", "REPLACE", "INSERT"))
            return f"{verb} INTO {table} ({names}) VALUES {rows}"
        if what < 0.85:
            name, type_ = random.choice(columns)
            value = str(random.randrange(30)) if name == "id" else self._value(type_)
            ignore = random.choice(("", "IGNORE "))
            return f"UPDATE {ignore}{table} SET {name} = {value} WHERE id IN ({some})"
        return f"DELETE FROM {table} WHERE id IN ({some})"

    # --- schema changes

    def _type(self) -> str:
        kind = self._random.choice(_TYPES)
        if kind.startswith(("CHAR", "VARCHAR", "TEXT")) and self._random.random() < 0.4:
            kind += f" CHARACTER SET {self._random.choice(self._charsets)}"
        return kind

    def _definition(self, kind: str = "") -> str:
        kind = kind or self._type()
        random = self._random.random()
        # Without strict mode a missing ENUM is stored as an invalid value, which strict targets refuse.
        if random < 0.25 and "NULL" not in kind and not kind.startswith("ENUM"):
            return f"{kind} NOT NULL"
        if random < 0.5 and not kind.startswith(("TEXT", "BLOB")):
            data = kind.partition("(")[0].partition(" ")[0].lower()
            return f"{kind} DEFAULT {self._value(data)}"
        return kind

    def _place(self, table: str) -> str:
        return self._random.choice(("", "", " FIRST", f" AFTER {self._column(table)}"))

    def _create(self) -> str:
        random = self._random
        columns = random.sample(_COLUMNS, random.randint(1, 4))
        lines = ["id INT", *(f"{name} {self._definition()}" for name in columns)]
        if random.random() < 0.85:
            lines.append("PRIMARY KEY (id)")
        replaces = random.choice(("CREATE TABLE", "CREATE TABLE", "CREATE OR REPLACE TABLE"))
        name = self._new_name() if replaces == "CREATE TABLE" else random.choice(_NAMES)
        return f"{replaces} {name} ({', '.join(lines)}) CHARSET {random.choice(self._charsets)}"

    def _create_like(self) -> str:
        return f"CREATE TABLE IF NOT EXISTS {self._random.choice(_NAMES)} LIKE {self._table()}"

    def _create_select(self) -> str:
        table, name = self._table(), self._new_name()
        if "varbinary" in dict(self._columns(table)).values():
            return f"CREATE TABLE {name} LIKE {table}"  # MariaDB logs other binary defaults than it has
        return f"CREATE TABLE {name} (PRIMARY KEY (id)) SELECT * FROM {table}"

    def _drop(self) -> str:
        return f"DROP TABLE IF EXISTS {', '.join(self._random.sample(_NAMES, self._random.randint(1, 2)))}"

    def _truncate(self) -> str:
        return f"TRUNCATE TABLE {self._table()}"

    def _rename(self) -> str:
        old, new = self._table(), self._new_name()
        return self._random.choice((f"RENAME TABLE {old} TO {new}", f"ALTER TABLE {old} RENAME TO {new}"))

    def _swap(self) -> str:
        tables = self._tables()
        if len(tables) < 2:
            return ""
        one, other = self._random.sample(tables, 2)
        return f"RENAME TABLE {one} TO swap, {other} TO {one}, swap TO {other}"

    def _add_column(self) -> str:
        table = self._table()
        column = f"{self._new_column(table)} {self._definition()}{self._place(table)}"
        return f"ALTER TABLE {table} ADD COLUMN {column}"

    def _drop_column(self) -> str:
        table = self._table()
        return f"ALTER TABLE {table} DROP COLUMN {self._column(table)}"

    def _modify(self) -> str:
        table = self._table()
        name = self._column(table)
        kind = self._type()
        ignore = "" if kind.startswith("ENUM") else self._random.choice(("", "IGNORE "))
        change = f"MODIFY {name} {self._definition(kind)}"
        if self._random.random() < 0.3:
            change = f"CHANGE {name} {self._new_column(table)} {self._definition(kind)}"
        return f"ALTER {ignore}TABLE {table} {change}{self._place(table)}"

    def _rename_column(self) -> str:
        table = self._table()
        return f"ALTER TABLE {table} RENAME COLUMN {self._column(table)} TO {self._new_column(table)}"

    def _swap_columns(self) -> str:
        table = self._table()
        one, other = self._column(table), self._column(table)
        return f"ALTER TABLE {table} RENAME COLUMN {one} TO {other}, RENAME COLUMN {other} TO {one}"

    def _set_default(self) -> str:
        table = self._table()
        name, kind = self._random.choice(self._columns(table))
        change = self._random.choice(("DROP DEFAULT", f"SET DEFAULT {self._value(kind)}"))
        return f"ALTER TABLE {table} ALTER COLUMN {name} {change}"

    def _convert(self) -> str:
        charset = self._random.choice(self._charsets)
        change = self._random.choice(("CONVERT TO CHARACTER SET", "DEFAULT CHARACTER SET"))
        table = self._table()
        if charset == "ucs2" and {"enum", "set"}.intersection(dict(self._columns(table)).values()):
            change = "DEFAULT CHARACTER SET"  # MariaDB converts the members by name only, and can't use them
        return f"ALTER TABLE {table} {change} {charset}"

    def _change_key(self) -> str:
        table = self._table()
        key = self._random.choice(("id", f"id, {self._column(table)}", f"{self._column(table)}, id"))
        add = f"ADD PRIMARY KEY ({key})"
        change = self._random.choice(("DROP PRIMARY KEY", add, f"DROP PRIMARY KEY, {add}"))
        return f"ALTER TABLE {table} {change}"

    def _index(self) -> str:
        table = self._table()
        name = self._column(table)
        return self._random.choice(
            (
                f"ALTER TABLE {table} ADD INDEX i_{name} ({name}(3))",
                f"CREATE INDEX IF NOT EXISTS j_{name} ON {table} ({name})",
                f"ALTER TABLE {table} DROP INDEX IF EXISTS i_{name}, ADD IF NOT EXISTS c9 INT DEFAULT 9",
            )
        )

    def _option(self) -> str:
        option = self._random.choice(("COMMENT = 'x'", "FORCE", "ENGINE = InnoDB", "AUTO_INCREMENT = 50"))
        return f"ALTER TABLE {self._table()} {option}"

    def _partition(self) -> str:
        parts = "PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE"
        return f"ALTER TABLE {self._table()} PARTITION BY RANGE (id) ({parts})"

    def _drop_partition(self) -> str:
        change = self._random.choice(("DROP PARTITION p0", "TRUNCATE PARTITION p0", "REMOVE PARTITIONING"))
        return f"ALTER TABLE {self._table()} {change}"
