"""The parts of a target of files: a store, a layout and a format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, assert_never

from ...errors import ConfigError
from .formats import Format, folder_format, lake_format
from .layout import FileLayout, TablesLayout
from .options import DirectoryOptions
from .store import Store
from .ticdc_layout import TicdcLayout

if TYPE_CHECKING:
    from .lakes.iceberg_address import CatalogAddress
    from .lakes.layout import LakeLayout


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
    store: Store,
    options: DirectoryOptions,
    catalog: CatalogAddress | None = None,
    scratch: Path | None = None,
) -> FilesTarget:
    """Return the target for options. `catalog` is for a layout of tables that are in one. Raises ConfigError
    for the options of an encoding.

    `scratch` is a directory for what a layout can make again; None: a temporary one.
    """
    layout: FileLayout
    match options.layout:
        case "tables":
            layout = TablesLayout()
        case "ticdc":
            layout = TicdcLayout(store, options)
        case "delta" | "iceberg":
            lake = lake_layout(store, options, catalog)
            if options.is_copy:
                from .lakes.copies.format import CopyFormat
                from .lakes.copies.layout import CopyLayout

                layout = CopyLayout(store, options.parallel, lake, scratch)
                return FilesTarget(store, layout, CopyFormat(), options)
            return FilesTarget(store, lake, lake_format(options, lake.arranged), options)
        case _:
            assert_never(options.layout)
    return FilesTarget(store, layout, folder_format(options), options)


def lake_layout(
    store: Store, options: DirectoryOptions, catalog: CatalogAddress | None, *, creates: bool = True
) -> LakeLayout:
    """Return the layout of a lake's tables, whatever its mode. `creates` is False to make no tables in a
    catalog's database. Raises ConfigError."""
    if options.layout == "delta":
        from .lakes.delta_layout import DeltaLayout

        return DeltaLayout(store, options.parallel)
    if catalog is None:
        raise ConfigError('layout = "iceberg" needs a catalog: give a URL such as iceberg+sql:///var/lake')
    from .lakes.iceberg_layout import IcebergLayout

    return IcebergLayout(store, options.parallel, catalog, creates=creates)
