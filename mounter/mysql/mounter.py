"""Decoding of the binlog's raw changes into transactions of rows and schema changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from ...chain.selection.tables import TablePatterns
from ...codec.mysql.entry import (
    COMMIT,
    DDL,
    RESULT_ROWS,
    ROLLBACK_MARKER,
    ROWS,
    ChunkRows,
    Definitions,
    GoneTable,
    NewTable,
    Query,
    decode_commit,
    decode_statement,
)
from ...codec.mysql.layout import Layouts, TableLayout
from ...codec.mysql.rows import OPS
from ...codec.mysql.run import EventBlock, EventRun
from ...codec.native import library
from ...codec.plain_blocks import PlainBlock
from ...errors import InvariantViolated, SourceError
from ...events import (
    Block,
    Chunk,
    CreateTable,
    Ddl,
    DropTable,
    Item,
    KeyRange,
    KvChange,
    OrderedKey,
    RenameTables,
    Rows,
    Run,
    Sorted,
    TableProgress,
    Transaction,
    Ts,
    runs_of,
)
from ...snapshot.overlay import Overlay, changed_within, ordered_keys
from .catalog import Catalog, CatalogChange
from .change import Change
from .ddl import Statements
from .history import History
from .policy import APPLY_ALL, Policy

_NO_STATEMENT: Final = Query("", "", 0.0)


class Mounter:
    """Decodes the changes that a feed's sorter releases, in order.

    Not thread-safe: it keeps the state of the open transaction.
    """

    def __init__(
        self,
        layouts: Layouts,
        source: str,
        tables: TablePatterns,
        *,
        catalog: Catalog | None = None,
        history: History | None = None,
        policy: Policy = APPLY_ALL,
        refuses_cascades: bool = False,
        details: bool = False,
        copies_generated: bool = True,
        reloading: Iterable[str] = (),
        lacks: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`source` is the name in every item. `catalog` has the tables as of the first change to be mounted;
        its changes are added to `history`. Rows need it if the binlog holds no names (binlog_row_metadata),
        for types that it doesn't tell apart, and without `copies_generated`: then generated columns aren't
        columns of the followed tables. With `details`, schema changes contain indexes and the like.
        `reloading` has the full names of tables that every target loads again. `lacks` is True for a table's
        full name if no target has the table at the first change.
        """
        self.catalog = catalog or Catalog()
        self._statements = Statements(
            tables,
            self.catalog,
            refuses_cascades=refuses_cascades,
            details=details,
            copies_generated=copies_generated,
            of_mysql=source.startswith("mysql "),
        )
        self._copies_generated = copies_generated
        self._history = history
        self._later = deque(history.later if history is not None else ())
        """Definitions that tables had later, when the log was read before."""
        self._reloading = set(reloading)
        self._unneeded = set(reloading)
        """Tables of which no target needs rows until they are loaded, or made by a statement."""
        self._lacks = lacks
        self._policy = policy
        self._changes: list[tuple[Ts, CatalogChange]] = []
        """Changes of the catalog that aren't in the history yet."""
        self._layouts: Final = layouts
        self._found: dict[int, TableLayout | None] = {}
        """Layouts by number, with the catalog's schemas as they are now."""
        self._source: Final = source
        self._rolled_back = False
        """True if the open transaction was rolled back."""
        self._loads = False
        """True if the open transaction's rows are part of a snapshot."""
        self._overlay: Overlay[OrderedKey] | None = None
        """The changes that were logged while the open transaction's rows were read, ..."""
        self._after: OrderedKey = ()
        """... whose keys are above this one."""
        self._held: Ddl | None = None
        """The open transaction's latest schema change, until it is known whether it is its last item."""

    def mount(self, sorted_: Sorted) -> list[Item]:
        """Return the items of released changes: transactions of rows, and schema changes, in commit order.

        Only the last item of a transaction has `last` set and a position. Rows are decoded on first access.
        """
        items: list[Item] = []
        runs: list[Run] = []
        blocks: dict[int, EventBlock] = {}
        is_open = False
        changes, place = sorted_.changes, 0
        while place < len(changes):
            if not is_open and (place := self._take_plain(changes, place, blocks, items)) == len(changes):
                break
            change = changes[place]
            place += 1
            commit_ts, start_ts = change.commit_ts, change.start_ts
            kind = change.key[-1]
            is_open = True
            if kind == ROWS:
                block = blocks.get(change.region_id)
                if block is None or self._overlay is not None:
                    runs += self._rows(change, blocks)
                elif not self._rolled_back:
                    runs.append(block.add(change.value, commit_ts, start_ts))
                if change.old_value:
                    self._end(change, change.old_value.decode(), None, runs, items)
                    runs = []
                    is_open = False
            elif kind == COMMIT:
                commit = decode_commit(change.value)
                self._end(change, commit.position, commit.chunk, runs, items)
                runs = []
                is_open = False
            elif kind == ROLLBACK_MARKER:
                self._rolled_back = True
            elif self._rolled_back:
                continue
            elif kind == RESULT_ROWS:
                self._loads = True
                run = self._layouts.layout(change.region_id).result_run(change.value, commit_ts, start_ts)
                if self._overlay is not None and not (run := self._overlay.unchanged(run)):
                    continue  # a run has rows
                runs.append(run)
            elif kind == DDL:
                blocks.clear()
                ddls = self._read_ddl(change)
                if ddls:
                    self._part(change, runs, items)
                    runs = []
                    items += ddls[:-1]
                    self._held = ddls[-1]
        if is_open and not sorted_.continues:
            raise InvariantViolated(f"the transaction of ts {change.commit_ts} has no commit")
        if runs:
            self._part(change, runs, items)
        if self._changes:
            self._remember()
        return items

    def _take_plain(
        self, changes: Block, place: int, blocks: dict[int, EventBlock], items: list[Item]
    ) -> int:
        """Add the items of transactions of one rows event, where none is open: in a third of the time. Return
        the place of the first other change."""
        if self._held is not None or self._overlay is not None or self._rolled_back or self._loads:
            return place
        if not library.in_use or isinstance(changes, PlainBlock):
            return place
        types = EventRun, Rows, Transaction
        return library.native.event_transactions(changes, place, blocks, items, OPS, self._source, *types)

    def _remember(self) -> None:
        """Make the changes of the catalog durable, before a sink can acknowledge their transactions."""
        if self._history is not None:
            self._history.append(self._changes)
        self._changes = []

    def _rows(self, change: KvChange, blocks: dict[int, EventBlock]) -> list[Run]:
        """Return the rows of an event of a layout that has no block yet, or that the overlay doesn't take."""
        if self._rolled_back:
            return []
        number, commit_ts, start_ts = change.region_id, change.commit_ts, change.start_ts
        layout = self._found[number] if number in self._found else self._find_layout(number, commit_ts)
        if layout is None:
            return []
        if self._overlay is not None:
            self._overlay.add(layout.read(change.value, commit_ts, start_ts))
            return []
        if layout.is_versioned:
            return runs_of(layout.read(change.value, commit_ts, start_ts))
        block = layout.block()
        if number in self._found:
            blocks[number] = block
        return [block.add(change.value, commit_ts, start_ts)]

    def _find_layout(self, number: int, commit_ts: Ts) -> TableLayout | None:
        self._learn_later(commit_ts)
        layout = self._layout(number)
        if not self._later:  # else it may be known later
            self._found[number] = layout
        return layout

    def _learn_later(self, commit_ts: Ts) -> None:
        """Learn the definitions that tables of which none is known had up to `commit_ts`."""
        while self._later and self._later[0].ts < commit_ts:
            known = self._later.popleft().known
            name = known.table.schema, known.table.name
            if self.catalog.exists(name) and self.catalog.get(name) is None:
                self.catalog.put(known)

    def _layout(self, number: int) -> TableLayout | None:
        """Return the layout of rows events, with the catalog's schema if the events don't tell it.

        None for a sequence, and if nothing tells it and the table is loaded again: then no target needs these
        rows.
        """
        layout = self._layouts.layout(number)
        if self._unneeded and ".".join(layout.names) in self._unneeded:
            return None
        known = self.catalog.get(layout.names)
        if known is not None:
            return layout.with_schema(known)
        if layout.may_be_sequence and self._is_no_table(layout):
            return None
        if layout.has_names and self._copies_generated:
            return layout
        name = ".".join(layout.names)
        is_loaded = any(later.known.table.full_name == name for later in self._later)
        if is_loaded or name in self._reloading or (self.catalog.state == "loading" and self._lacks(name)):
            return None
        if self._copies_generated:
            return layout
        raise SourceError(
            f"table {name}: its definition isn't known, which source.generated_columns = 'leave_out' needs: "
            f"load the table again (tidemill resume FEED --resnapshot {name})"
        )

    def _is_no_table(self, layout: TableLayout) -> bool:
        """Return True if a table of the form of a sequence is one: by the catalog, or by its columns'
        names."""
        if self.catalog.exists(layout.names):
            return False
        return layout.has_names or self.catalog.is_absent(layout.names)

    def _part(self, change: KvChange, runs: list[Run], items: list[Item]) -> None:
        """Emit the rows so far of a transaction that continues."""
        if self._held is not None:
            items.append(self._held)
            self._held = None
        if runs:
            after = None if self._overlay is None else self._after
            chunk = Chunk(runs[0].table.full_name, TableProgress(()), after) if self._loads else None
            commit_ts, start_ts = change.commit_ts, change.start_ts
            items.append(Transaction(commit_ts, start_ts, self._source, Rows(runs), last=False, chunk=chunk))

    def _end(
        self, change: KvChange, position: str, chunk: Chunk | None, runs: list[Run], items: list[Item]
    ) -> None:
        if self._overlay is not None and chunk is not None:
            runs += runs_of(changed_within(self._overlay, KeyRange(self._after, chunk.loaded.last)))
        self._rolled_back = self._loads = False
        self._overlay = None
        if chunk is not None and not chunk.table:
            self._end_loading()
            self._note(change)
        commit_ts, start_ts = change.commit_ts, change.start_ts
        if runs and runs[0].commit_ts != commit_ts:
            raise InvariantViolated(f"the transaction of ts {runs[0].commit_ts} has no commit")
        if self._held is not None:
            if not runs and chunk is None:
                items.append(replace(self._held, position=position, last=True))
                self._held = None
                return
            self._part(change, [], items)
        items.append(Transaction(commit_ts, start_ts, self._source, Rows(runs), position, True, chunk))

    def _end_loading(self) -> None:
        """Note that all tables are loaded but those that are paused, which exist without a definition."""
        if self.catalog.state == "loading":
            self.catalog.end_loading()
            for name in sorted(self._unneeded):
                schema, _, table = name.partition(".")
                self.catalog.forget((schema, table))

    def _read_ddl(self, change: KvChange) -> list[Ddl]:
        statement = decode_statement(change.value)
        self._learn_later(change.commit_ts)
        self._found.clear()
        ddls: list[Ddl] = []
        if isinstance(statement, Definitions):
            self.catalog.learn(
                statement.databases,
                statement.collations,
                folds_names=statement.folds_names,
                loading=statement.loading,
            )
            for one in statement.tables:
                self.catalog.put(one)
        elif isinstance(statement, NewTable):
            table = statement.known.table
            self._reloading.discard(table.full_name)
            self._unneeded.discard(table.full_name)
            self.catalog.put(statement.known)
            actions = CreateTable(table), *self._statements.details_of(statement.known)
            ddls = [self._ddl(change, Change(table.schema, table.name, actions))]
        elif isinstance(statement, ChunkRows):
            self._loads = True
            self._overlay, self._after = Overlay(ordered_keys), statement.after
        elif isinstance(statement, GoneTable):
            self._unneeded.discard(f"{statement.schema}.{statement.name}")
            self.catalog.remove((statement.schema, statement.name))
            ddls = [self._ddl(change, Change(statement.schema, statement.name, (DropTable(),)))]
        else:
            changes = self._policy.apply(self._statements.changes(statement), statement)
            ddls = [self._ddl(change, one, statement) for one in changes]
            if self._unneeded:
                self._unneeded.difference_update(*map(_made_or_gone, ddls))
            self._reloading.update(ddl.full_name for ddl in ddls if ddl.reload and not ddl.actions)
        is_changed = self._note(change, always=bool(ddls))
        if is_changed and not ddls and isinstance(statement, Query) and self._history is not None:
            ddls = [self._ddl(change, Change(statement.schema, ""), statement)]
        return ddls

    def _note(self, change: KvChange, *, always: bool = False) -> bool:
        """Note what a change did to the catalog, for the history; return False if that is nothing. With
        `always`, that is noted too."""
        changed = self.catalog.take_change()
        if changed is not None or always:
            self._changes.append((change.commit_ts, changed or CatalogChange()))
        return changed is not None

    def _ddl(self, change: KvChange, made: Change, query: Query = _NO_STATEMENT) -> Ddl:
        return Ddl(
            change.commit_ts,
            change.start_ts,
            self._source,
            made.schema,
            made.table,
            query.query,
            made.actions,
            refusal=made.refusal,
            epoch_seconds=query.epoch_seconds,
            last=False,
            utc_offset_seconds=query.utc_offset_seconds or 0,
            reload=made.reload,
            sql_mode=query.sql_mode,
            logged_at=query.position,
            noted=self._history is not None,
        )


def _made_or_gone(ddl: Ddl) -> set[str]:
    """Return the full names by which a schema change makes, drops or renames tables."""
    names: set[str] = set()
    for action in ddl.actions:
        match action:
            case CreateTable() | DropTable():
                names.add(ddl.full_name)
            case RenameTables(pairs):
                names.update(".".join(name) for pair in pairs for name in pair)
    return names
