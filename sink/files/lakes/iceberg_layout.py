"""The layout of Iceberg tables: namespaces as the schemas of the source, in one catalog."""

from __future__ import annotations

from io import BytesIO
from threading import RLock
from urllib.parse import unquote

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.typedef import Identifier

from ....errors import SinkError
from ..formats import Group
from ..layout import HIDDEN, day_of
from ..parquet_format import write_parquet
from ..store import Store
from .columns import DATE
from .copies.iceberg_log import IcebergLog
from .iceberg_address import SQLITE, CatalogAddress
from .iceberg_catalog import check_database, open_catalog
from .iceberg_io import location_of
from .iceberg_table import Iceberg
from .layout import DDL, VERSIONS, LakeLayout
from .parquet import open_parquet, read_rows


class IcebergLayout(LakeLayout):
    """Folders of Iceberg tables, which readers see by the catalog. Called only by its sink."""

    own_names = frozenset({HIDDEN, SQLITE})

    def __init__(self, store: Store, parallel: int, address: CatalogAddress, *, creates: bool = True) -> None:
        """Raises ConfigError for the URL of the catalog's database."""
        super().__init__(store, parallel)
        check_database(address)
        self._address = address
        self._creates = creates
        self._lock = RLock()
        self._catalog: Catalog | None = None

    def start(self) -> None:
        for table in self._tables.values():
            if isinstance(table, Iceberg):
                table.forget()

    def completed(self, folder: str, rows: pa.Table) -> pa.Table:
        """Add the column by which tables are partitioned, of rows of one day, and the ids of columns."""
        day = pa.scalar(day_of(rows["commit_ts"][0].as_py()), pa.int32()).cast(pa.date32())
        date = pa.field(DATE, pa.date32(), nullable=False)
        dated = rows.append_column(date, pa.repeat(day, rows.num_rows))
        return pa.Table.from_arrays(dated.columns, schema=self._iceberg(folder).numbered(dated.schema))

    def fit(self, group: Group, name: str) -> None:
        """Give columns the ids that they have in the other files of the commit: tasks of Spark number those
        of one table at the same time."""
        with self._store.open(name) as file:
            parquet = open_parquet(file)
            columns = parquet.schema_arrow
            numbered = self._iceberg(self.folder(group[0])).numbered(columns)
            if numbered.equals(columns, check_metadata=True):
                return
            rows = read_rows(parquet)
        content = BytesIO()
        write_parquet(pa.Table.from_arrays(rows.columns, schema=numbered), content)
        self._store.write(name, content.getvalue())

    def _iceberg(self, folder: str) -> Iceberg:
        with self._lock:  # one object plans the columns of all files of a table
            table = self._table(folder)
        assert isinstance(table, Iceberg)
        return table

    def opened(self, folder: str) -> Iceberg:
        options = self._address.options
        identifier = identifier_of(folder, options.namespace)
        location = f"{location_of(self._store)}/{folder}"
        return Iceberg(self._opened_catalog(), identifier, location, options.keep_snapshots)

    def log(self, folder: str) -> IcebergLog:
        options = self._address.options
        identifier = identifier_of(folder, options.namespace)
        return IcebergLog(self._opened_catalog(), identifier, self._store, folder, options.keep_snapshots)

    def close(self) -> None:
        catalog, self._catalog = self._catalog, None
        self._tables.clear()
        if catalog is not None:
            catalog.close()

    def _opened_catalog(self) -> Catalog:
        with self._lock:
            if self._catalog is None:
                self._catalog = open_catalog(self._address, self._store, creates=self._creates)
            return self._catalog


def identifier_of(folder: str, namespace: str) -> Identifier:
    """Return the namespace and name of the table in a folder. Raises SinkError for a table of the source that
    would have the name of one of the feed's own, which are in `namespace`."""
    if folder in (DDL, VERSIONS):
        return namespace, folder
    schema, _, name = folder.partition(".")
    identifier = unquote(schema), unquote(name) or unquote(schema)
    if identifier in ((namespace, DDL), (namespace, VERSIONS)):
        raise SinkError(f"{'.'.join(identifier)} is a table of the feed's own: give another `namespace`")
    return identifier
