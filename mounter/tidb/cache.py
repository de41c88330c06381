"""Cache of the most recently used table infos, decoded."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ...codec.tidb.table_info import TableInfo
from .infos import StoredInfo


class InfoCache:
    """Keeps up to `limit` bytes of infos, measured as stored. Not thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit: Final = limit
        self._infos: OrderedDict[StoredInfo, TableInfo] = OrderedDict()
        self._bytes = 0

    def get(self, place: StoredInfo) -> TableInfo | None:
        info = self._infos.get(place)
        if info is not None:
            self._infos.move_to_end(place)
        return info

    def put(self, place: StoredInfo, info: TableInfo) -> None:
        self._infos[place] = info
        self._bytes += place.size
        while self._bytes > self._limit and len(self._infos) > 1:
            self.forget(next(iter(self._infos)))

    def forget(self, place: StoredInfo) -> None:
        if self._infos.pop(place, None) is not None:
            self._bytes -= place.size
