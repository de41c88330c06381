"""DDL statements: the schema change of each, and its job."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from ...codec.tidb.action import Action
from ...codec.tidb.job import DELETE_ONLY, PUBLIC, WRITE_ONLY, WRITE_REORGANIZATION, Job, make_args
from ...codec.tidb.table_info import DbInfo, TableInfo
from ...events import Ts
from .alter import AlterResult, add_index, drop_index, parse_clause, with_moment
from .columns import parse_charset
from .ddl import DdlWriter, Step, TableChange, both, database_mutation, table_mutation
from .partition import exchange
from .reorganization import copy_rows, reorganized
from .rewriting import Storage, add_steps, key_removal, removal, rewrite
from .schema import Schema, SqlTable
from .table import parse_parts, parse_table
from .tokens import Tokens


class Statements:
    """Runs one statement at a time: first the schema is changed, then the job is written."""

    def __init__(
        self, writer: Storage, schema: Schema, ddl: DdlWriter, *, args_version: int, removes_late: bool
    ) -> None:
        self._writer = writer
        self._schema = schema
        self._ddl = ddl
        self._args_version = args_version
        self._removes_late = removes_late
        self._current = ""
        """The current database (USE)."""
        self._between: Callable[[], object] = _nothing

    def run(self, statement: str, between: Callable[[], object]) -> Ts:
        """Run a statement; return the ts at which the schema changed, 0 if it didn't. Raises ValueError.

        `between` is called after each step of a job before the last one.
        """
        self._between = between
        tokens = Tokens(statement)
        match tokens.take().lower():
            case "use":
                self._current = self._schema.database(tokens.name()).name
                return 0
            case "create":
                return self._create(tokens)
            case "drop":
                return self._drop(tokens)
            case "alter":
                return self._alter(tokens)
            case "rename":
                tokens.expect("table")
                return self._rename(tokens)
            case "truncate":
                tokens.has("table")
                return self._truncate(tokens)
            case "recover" | "flashback":
                tokens.expect("table")
                return self._recover(tokens)
        raise ValueError(f"the emulator doesn't know this statement: {statement}")

    # --- databases

    def _create(self, tokens: Tokens) -> Ts:
        unique = tokens.has("unique")
        if tokens.has("index") or unique:
            return self._create_index(tokens, unique=unique)
        if tokens.has("table"):
            return self._create_table(tokens)
        if not tokens.has("database"):
            tokens.expect("schema")
        quiet = tokens.has("if", "not", "exists")
        name = tokens.name()
        if self._schema.has_database(name):
            if quiet:
                return 0
            raise ValueError(f"there is a database {name} already")
        charset, collation = parse_charset(tokens, "utf8mb4", "utf8mb4_bin")
        info = DbInfo(id=self._schema.new_id(), name=name, charset=charset, collation=collation)
        change = TableChange(schema_id=info.id)
        change.put_database(info)
        self._schema.set_database(info)
        return self._job(tokens, Action.CREATE_SCHEMA, change, info.name)

    def _drop_database(self, tokens: Tokens) -> Ts:
        quiet = tokens.has("if", "exists")
        name = tokens.name()
        if quiet and not self._schema.has_database(name):
            return 0
        info = self._schema.database(name)
        change = TableChange(schema_id=info.id)
        for table in self._schema.tables(name):
            change.delete_table(info.id, table.info.id)
        for state in (WRITE_ONLY, DELETE_ONLY):
            change.steps.append(Step(state, [database_mutation(replace(info, state=state))]))
        change.delete_database(info)
        self._schema.drop_database(name)
        return self._job(tokens, Action.DROP_SCHEMA, change, info.name)

    def _alter_database(self, tokens: Tokens) -> Ts:
        before = self._schema.database(tokens.name())
        charset, collation = parse_charset(tokens, before.charset, before.collation)
        info = replace(before, charset=charset, collation=collation)
        change = TableChange(schema_id=info.id)
        change.put_database(info)
        self._schema.set_database(info)
        return self._job(tokens, Action.MODIFY_SCHEMA_CHARSET_AND_COLLATE, change, info.name)

    # --- tables

    def _name(self, tokens: Tokens) -> tuple[DbInfo, str]:
        name = tokens.name()
        if tokens.has("."):
            return self._schema.database(name), tokens.name()
        if not self._current:
            raise ValueError(f"no database is in use: put it in front of {name}")
        return self._schema.database(self._current), name

    def _table(self, tokens: Tokens) -> SqlTable:
        database, name = self._name(tokens)
        return self._schema.table(f"{database.name}.{name}")

    def _create_table(self, tokens: Tokens) -> Ts:
        quiet = tokens.has("if", "not", "exists")
        database, name = self._name(tokens)
        if self._schema.has_table(database.name, name):
            if quiet:
                return 0
            raise ValueError(f"there is a table {database.name}.{name} already")
        if tokens.has("like"):
            like = self._table(tokens).info
            info = replace(_with_new_ids(like, self._schema), name=name)
        else:
            info = parse_table(tokens, name, database, self._schema.new_id)
        change = TableChange(schema_id=database.id, table_id=info.id)
        self._put(change, database, info)
        return self._job(tokens, Action.CREATE_TABLE, change, database.name, name)

    def _put(self, change: TableChange, database: DbInfo, info: TableInfo) -> TableInfo:
        """Add a mutation that stores the table's info."""
        ts = self._writer.tso()
        info = replace(with_moment(info, ts), update_ts=ts)
        change.put_table(database.id, info)
        self._schema.set_table(database, info)
        return info

    def _drop(self, tokens: Tokens) -> Ts:
        if tokens.has("database") or tokens.has("schema"):
            return self._drop_database(tokens)
        if tokens.has("index"):
            name = tokens.name()
            tokens.expect("on")
            table = self._table(tokens)
            return self._become(tokens, table, [drop_index(table.info, name)])
        tokens.expect("table")
        quiet = tokens.has("if", "exists")
        while True:
            ts = self._drop_table(tokens, quiet=quiet)
            if not tokens.has(","):
                return ts

    def _drop_table(self, tokens: Tokens, *, quiet: bool) -> Ts:
        database, name = self._name(tokens)
        if quiet and not self._schema.has_table(database.name, name):
            return 0
        table = self._schema.table(f"{database.name}.{name}")
        self._schema.dropped[database.name.lower(), name.lower()] = table
        info = table.info
        change = TableChange(schema_id=database.id, table_id=info.id)
        change.delete_table(database.id, info.id)
        for state in (WRITE_ONLY, DELETE_ONLY):
            change.steps.append(Step(state, [table_mutation(database.id, replace(info, state=state))]))
        change.table = info
        self._schema.drop_table(database.name, name)
        return self._job(tokens, Action.DROP_TABLE, change, database.name, name)

    def _truncate(self, tokens: Tokens) -> Ts:
        table = self._table(tokens)
        old = table.info
        change = TableChange(schema_id=table.database.id, table_id=old.id)
        change.delete_table(table.database.id, old.id)
        self._put(change, table.database, _with_new_ids(old, self._schema))
        return self._job(tokens, Action.TRUNCATE_TABLE, change, table.database.name, old.name)

    def _recover(self, tokens: Tokens) -> Ts:
        """Run RECOVER TABLE a, or FLASHBACK TABLE a TO b: a dropped table comes back with its id."""
        database, old = self._name(tokens)
        name = tokens.name() if tokens.has("to") else old
        if self._schema.has_table(database.name, name):
            raise ValueError(f"there is a table {database.name}.{name} already")
        dropped = self._schema.dropped.pop((database.name.lower(), old.lower()), None)
        if dropped is None:
            raise ValueError(f"no table {database.name}.{old} was dropped")
        change = TableChange(schema_id=database.id, table_id=dropped.info.id)
        change.steps = [Step(WRITE_ONLY, [])]
        change.before_last = partial(self._put, change, database, replace(dropped.info, name=name))
        return self._job(tokens, Action.RECOVER_TABLE, change, database.name, name)

    def _rename(self, tokens: Tokens) -> Ts:
        """Run RENAME TABLE a TO b; several tables are renamed one after the other, in one job."""
        first = self._move(tokens)
        if not tokens.has(","):
            return self._rename_one(tokens, *first)
        change, moves = TableChange(schema_id=0), [first]
        self._moved(change, *first)
        while True:
            moves.append(self._move(tokens))
            self._moved(change, *moves[-1])
            if not tokens.has(","):
                break
        names = {table.info.id: (database, name) for table, database, name in moves}
        last = [self._schema.table(f"{database.name}.{name}").info for database, name in names.values()]
        change.tables = last
        change.table = None
        table, database, _ = moves[-1]
        change.schema_id, change.table_id = database.id, table.info.id
        change.moved = [{"schema_id": new.id, "table_id": old.info.id} for old, new, _ in moves]
        args, at_step = self._rename_args(moves)
        change.steps = [Step(PUBLIC, change.take_mutations(), at_step)]
        return self._job(tokens, Action.RENAME_TABLES, change, database.name, "", args)

    def _rename_args(self, moves: list[tuple[SqlTable, DbInfo, str]]) -> tuple[object, object]:
        """Return the arguments of RENAME TABLES before and after its first step."""
        if self._args_version == 2:
            infos = [
                {
                    "old_schema_id": old.database.id,
                    "old_schema_name": both(old.database.name),
                    "new_table_name": both(name),
                    "old_table_name": both(old.info.name),
                    "new_schema_id": new.id,
                    "table_id": old.info.id,
                }
                for old, new, name in moves
            ]
            return {"rename_table_infos": infos}, {"rename_table_infos": infos}
        args = [
            [old.database.id for old, _, _ in moves],
            [new.id for _, new, _ in moves],
            [both(name) for _, _, name in moves],
            [old.info.id for old, _, _ in moves],
            [both(old.database.name) for old, _, _ in moves],
            [both(old.info.name) for old, _, _ in moves],
        ]
        return args, args[:-1]

    def _move(self, tokens: Tokens) -> tuple[SqlTable, DbInfo, str]:
        """Parse the table, its new database and its new name."""
        table = self._table(tokens)
        tokens.expect("to")
        database, name = self._name(tokens)
        if self._schema.has_table(database.name, name):
            raise ValueError(f"there is a table {database.name}.{name} already")
        return table, database, name

    def _moved(self, change: TableChange, table: SqlTable, database: DbInfo, name: str) -> None:
        change.delete_table(table.database.id, table.info.id)
        self._schema.drop_table(table.database.name, table.info.name)
        self._put(change, database, replace(table.info, name=name))

    def _rename_one(self, tokens: Tokens, table: SqlTable, database: DbInfo, name: str) -> Ts:
        change = TableChange(schema_id=database.id, table_id=table.info.id)
        self._moved(change, table, database, name)
        old = table.database
        args: object = [old.id, both(name), both(old.name)]
        at_step: object = [old.id]
        if self._args_version == 2:
            args = {"old_schema_id": old.id, "old_schema_name": both(old.name), "new_table_name": both(name)}
            at_step = None
        change.steps = [Step(PUBLIC, change.take_mutations(), at_step)]
        return self._job(tokens, Action.RENAME_TABLE, change, database.name, table.info.name.lower(), args)

    # --- alter

    def _alter(self, tokens: Tokens) -> Ts:
        if tokens.has("database") or tokens.has("schema"):
            return self._alter_database(tokens)
        tokens.expect("table")
        table = self._table(tokens)
        if tokens.has("exchange", "partition"):
            return self._exchange(tokens, table)
        if tokens.has("reorganize", "partition"):
            return self._become(tokens, table, [reorganized(tokens, table.info, self._schema.new_id)])
        done = parse_clause(tokens, table.info, self._schema.new_id)
        while tokens.has(","):
            done += parse_clause(tokens, done[-1].info, self._schema.new_id)
        if tokens.next is not None:
            raise tokens.unexpected("the end")
        last = done[-1]
        if last.action == Action.RENAME_TABLE:
            database = self._schema.database(last.database) if last.database else table.database
            if self._schema.has_table(database.name, last.info.name):
                raise ValueError(f"there is a table {database.name}.{last.info.name} already")
            return self._rename_one(tokens, table, database, last.info.name)
        return self._become(tokens, table, done)

    def _create_index(self, tokens: Tokens, *, unique: bool) -> Ts:
        if unique:
            tokens.has("index")
        name = tokens.name()
        tokens.expect("on")
        table = self._table(tokens)
        return self._become(tokens, table, [add_index(table.info, name, parse_parts(tokens), unique=unique)])

    def _become(self, tokens: Tokens, table: SqlTable, done: list[AlterResult]) -> Ts:
        """Change a table to the result of the last clause; several clauses are one job."""
        change = TableChange(schema_id=table.database.id, table_id=table.info.id)
        action = done[0].action if len(done) == 1 else Action.MULTI_SCHEMA_CHANGE
        rewritten = done[0].rewritten
        if any(one.rewritten or one.action == Action.ADD_PRIMARY_KEY for one in done[1:]) or (
            rewritten and len(done) > 1
        ):
            raise ValueError(f"the emulator doesn't run this beside other clauses: {tokens.statement}")
        if rewritten is not None:
            add_steps(change, table, *rewritten)
            filling: Callable[[], object] = partial(self._fill, table)
            if self._removes_late:
                change.steps.append(removal(table, rewritten[0], done[-1].info, filling))
                filling = _nothing
            change.before_last = partial(self._end_rewriting, table, change, done[-1].info, filling)
        elif action == Action.REORGANIZE_PARTITION:
            filling = partial(copy_rows, self._writer, table, done[-1].info)
            change.steps = [Step(WRITE_REORGANIZATION, [table_mutation(table.database.id, table.info)])]
            change.before_last = partial(self._end_rewriting, table, change, done[-1].info, filling)
        else:
            self._put(change, table.database, done[-1].info)
        if action == Action.DROP_PRIMARY_KEY:
            change.steps = key_removal(table)
        if action == Action.DROP_COLUMN:
            left = {column.id for column in done[-1].info.columns}
            columns = tuple(
                column if column.id in left else replace(column, state=DELETE_ONLY)
                for column in table.info.columns
            )
            deleting = table_mutation(table.database.id, replace(table.info, columns=columns))
            change.steps = [Step(DELETE_ONLY, [deleting], is_logged=True)]
        if action == Action.MODIFY_COLUMN:
            change.done_args = [[], []]
        return self._job(tokens, action, change, table.database.name, table.info.name)

    def _exchange(self, tokens: Tokens, table: SqlTable) -> Ts:
        name = tokens.name()
        tokens.expect("with", "table")
        other = self._table(tokens)
        change, args = exchange(self._schema, table, name, other)
        return self._job(
            tokens, Action.EXCHANGE_TABLE_PARTITION, change, other.database.name, other.info.name, args
        )

    def _fill(self, table: SqlTable) -> None:
        rewrite(self._writer, self._schema.table(f"{table.database.name}.{table.info.name}"))

    def _end_rewriting(
        self, table: SqlTable, change: TableChange, info: TableInfo, filling: Callable[[], object]
    ) -> None:
        filling()
        self._put(change, table.database, info)

    def _job(
        self,
        tokens: Tokens,
        action: Action,
        change: TableChange,
        schema_name: str,
        table_name: str = "",
        args: object = None,
    ) -> Ts:
        job = Job(
            id=0,
            type=action,
            schema_id=change.schema_id,
            table_id=change.table_id,
            schema_name=schema_name,
            table_name=table_name,
            query=tokens.statement,
            raw_args=make_args(args),
            version=self._args_version,
        )
        return self._ddl.run(job, change, self._between)


def _nothing() -> None:
    """Do nothing between the steps of a job."""


def _with_new_ids(info: TableInfo, schema: Schema) -> TableInfo:
    """Return the same table with new ids, empty."""
    partition = info.partition
    if partition:
        definitions = tuple(replace(part, id=schema.new_id()) for part in partition.definitions)
        partition = replace(partition, definitions=definitions)
    return replace(info, id=schema.new_id(), partition=partition)
