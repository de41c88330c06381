"""The parts of a target of files: a store, a layout and a format."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, assert_never

from ...errors import ConfigError
from .formats import Format, folder_format
from .layout import FileLayout, TablesLayout
from .options import DirectoryOptions
from .store import Store
from .ticdc_layout import TicdcLayout

if TYPE_CHECKING:
    from .lakes.iceberg_address import CatalogAddress


class FilesTarget(NamedTuple):
    """One writer's target. Layout and format are used by that writer only."""

    store: Store
    layout: FileLayout
    format: Format
    options: DirectoryOptions

    @property
    def name(self) -> str:
        """Canonical name of the target."""
        return self.store.name


def files_target(
    store: Store, options: DirectoryOptions, catalog: CatalogAddress | None = None
) -> FilesTarget:
    """Return the target for options. `catalog` is for a layout of tables that are in one. Raises ConfigError
    for the options of an encoding."""
    return FilesTarget(store, _layout(store, options, catalog), folder_format(options), options)


def _layout(store: Store, options: DirectoryOptions, catalog: CatalogAddress | None) -> FileLayout:
    match options.layout:
        case "tables":
            return TablesLayout()
        case "ticdc":
            return TicdcLayout(store, options)
        case "delta":
            from .lakes.delta_layout import DeltaLayout

            return DeltaLayout(store, options.parallel)
        case "iceberg":
            if catalog is None:
                raise ConfigError(
                    'layout = "iceberg" needs a catalog: give a URL such as iceberg+sql:///var/lake'
                )
            from .lakes.iceberg_layout import IcebergLayout

            return IcebergLayout(store, options.parallel, catalog)
        case _:
            assert_never(options.layout)
