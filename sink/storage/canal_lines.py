"""Lines of canal-json with the key of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...events import Item, Transaction
from ..encoding.encoder import Encoder
from ..encoding.json_text import html_json_bytes
from ..files.message_lines import MessageLines
from ..files.row_numbers import RowNumbers

_END: Final = b"}}"
"""End of a message with TiDB's extension: that of `_tidb`, and its own."""


class CanalLines(MessageLines):
    """Writes the source and the number of the row in its transaction into `_tidb`, after the commit ts."""

    def __init__(self, make: Callable[[], Encoder], end: bytes) -> None:
        """The encoder of `make` writes TiDB's extension."""
        self._numbers: Final = RowNumbers()
        super().__init__(make, end)

    def start(self) -> None:
        super().start()
        self._numbers.start()

    def of(self, item: Item) -> bytes:
        if not isinstance(item, Transaction):
            return super().of(item)
        messages = self._encoder.rows(item.rows, item.last)
        source = html_json_bytes(item.source)
        lines = []
        for number, message in enumerate(messages, self._numbers.first(item)):
            assert message.value is not None
            head = message.value.removesuffix(_END)
            lines.append(b'%b,"source":%b,"row":%d}}%b' % (head, source, number, self._end))
        return b"".join(lines)
