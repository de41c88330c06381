"""The layout of Delta tables: a folder for each table of the source, and one for schema changes.

shop.orders/date=2026-11-21/<first commit ts>-<last>-<origin>.parquet
shop.orders/_delta_log/…
ddl/…                               schema changes
versions/…                          the tables' versions by ts of the source
_tidemill/                          not for readers
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from ...codec.checkpoint import decode_checkpoint
from ...errors import InvariantViolated
from ...events import Table, Ts, physical_ms
from ...failpoint import reach
from .delta_table import DataFile, Delta
from .layout import DatedFolder, TablesLayout, date_of, file_name, folder_of
from .ledger import State
from .parquet_format import write_parquet
from .store import Store, in_parallel

DDL: Final = "ddl"
VERSIONS: Final = "versions"
_NAME: Final = re.compile(r"([^/]+)/(date=(\d{4}-\d\d-\d\d)/[^/]+)")
_VERSIONS: Final = pa.schema(
    [
        pa.field("commit_ts", pa.int64(), nullable=False),
        pa.field("start_ts", pa.int64(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("table", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
    ]
)


class DeltaLayout(TablesLayout):
    """Folders of Delta tables, which readers see by their logs. Called only by its sink."""

    def __init__(self, store: Store, parallel: int) -> None:
        self._store = store
        self._parallel = parallel
        self._tables: dict[str, Delta] = {}
        """By folder."""

    def folder(self, table: Table | None) -> str:
        return DDL if table is None else folder_of(table.schema, table.name)

    def dated(self, store: Store) -> Iterator[DatedFolder]:  # noqa: ARG002
        yield from ()

    def announce(self, state: State) -> None:
        """Add the files of a saved state to their tables' logs, and the tables' versions to those by ts."""
        writer = f"tidemill/{state.feed}/{state.sink}"
        ts = decode_checkpoint(state.checkpoint, self._store.name)[0].ts
        names: defaultdict[str, list[str]] = defaultdict(list)
        for name in state.staged.values():
            names[_parts(name)[0]].append(name)
        versions: dict[str, int] = {}
        add = partial(self._add, writer, state.commits, ts, versions)
        in_parallel(self._parallel, add, list(names.items()))
        versions.pop(DDL, None)
        if versions:
            self._tell_versions(writer, state.commits, ts, versions)

    def _add(
        self, writer: str, number: int, ts: Ts, versions: dict[str, int], folder: tuple[str, list[str]]
    ) -> None:
        name, paths = folder
        reach("delta.adding")
        files = partial(map, self._file, paths)
        versions[name] = self._table(name).add(writer, number, physical_ms(ts), files)

    def _tell_versions(self, writer: str, number: int, ts: Ts, versions: dict[str, int]) -> None:
        def files() -> list[DataFile]:
            rows = [
                {"commit_ts": ts, "start_ts": ts, "sequence": place, "table": name, "version": version}
                for place, (name, version) in enumerate(sorted(versions.items()))
            ]
            content = BytesIO()
            write_parquet(pa.Table.from_pylist(rows, _VERSIONS), content)
            name = f"{VERSIONS}/date={date_of(ts)}/{file_name(ts, ts, f'{number:010}', '.parquet')}"
            self._store.write(name, content.getvalue())
            return [self._file(name)]

        reach("delta.telling")
        self._table(VERSIONS).add(writer, number, physical_ms(ts), files)

    def _table(self, folder: str) -> Delta:
        if folder not in self._tables:
            store = self._store
            self._tables[folder] = Delta(
                f"{store.name}/{folder}", f"{store.url}/{folder}", store.access, is_remote=store.is_remote
            )
        return self._tables[folder]

    def _file(self, name: str) -> DataFile:
        _, path, date = _parts(name)
        with self._store.open(name) as file:
            size = file.seek(0, 2)
            file.seek(0)
            return DataFile(path, date, size, pq.read_metadata(file))


def _parts(name: str) -> tuple[str, str, str]:
    """Return a file's table folder, its path below it, and its date."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvariantViolated(f"{name} isn't a file of a Delta table")
    return match[1], match[2], match[3]
