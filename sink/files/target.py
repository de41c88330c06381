"""The parts of a target of files: a store, a layout and a format."""

from __future__ import annotations

from typing import NamedTuple

from .formats import Format, folder_format
from .layout import FileLayout, TablesLayout
from .options import DirectoryOptions
from .store import Store
from .ticdc_layout import TicdcLayout


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


def files_target(store: Store, options: DirectoryOptions) -> FilesTarget:
    """Return the target for options. Raises ConfigError for those of an encoding."""
    layout: FileLayout = TicdcLayout(store, options) if options.layout == "ticdc" else TablesLayout()
    return FilesTarget(store, layout, folder_format(options), options)
