"""The layout of Delta tables: each has its log in its folder."""

from __future__ import annotations

from .copies.delta_log import DeltaLog
from .delta_table import Delta
from .layout import LakeLayout


class DeltaLayout(LakeLayout):
    """Folders of Delta tables, which readers see by their logs. Called only by its sink."""

    def opened(self, folder: str) -> Delta:
        store = self._store
        name, url = f"{store.name}/{folder}", f"{store.url}/{folder}"
        return Delta(name, url, store.access, is_remote=store.is_remote)

    def log(self, folder: str) -> DeltaLog:
        return DeltaLog(self._store, folder)
