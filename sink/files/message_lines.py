"""Messages of an encoding as the lines of a file. Their values are text, keys aren't written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...errors import ConfigError
from ...events import Ddl, Item, Transaction, Ts
from ..encoding.encoder import Encoder, Message, Milliseconds
from ..encoding.encodings import make_encoder
from ..encoding.json_text import html_json_bytes
from .lines import RowNumbers

_FOREIGN: Final = (
    "large-message-handle-compression",
    "output-field-header",
    "encoding-format",
    "schema-registry",
)
"""Options whose results aren't lines; but JSON is."""
_END: Final = b"}}"
"""End of a message with TiDB's extension: that of `_tidb`, and its own."""


class MessageLines:
    """Forms a line of each message's value."""

    has_definitions = True

    def __init__(self, make: Callable[[], Encoder], end: bytes) -> None:
        self._make: Final = make
        self._end: Final = end
        self.start()

    def start(self) -> None:
        self._encoder = self._make()

    def of(self, item: Item) -> bytes:
        if isinstance(item, Ddl):
            return self._joined(self._encoder.ddl(item))
        return self._joined(self._encoder.rows(list(item.rows), item.last))

    def watermark(self, ts: Ts) -> bytes:
        return self._joined(self._encoder.watermark(ts))

    def _joined(self, messages: list[Message]) -> bytes:
        return b"".join([message.value + self._end for message in messages if message.value is not None])


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


def message_lines(
    encoding: str,
    options: Mapping[str, Any],
    now: Milliseconds,
    end: bytes = b"\n",
    made: type[MessageLines] = MessageLines,
) -> MessageLines:
    """Return the lines of an encoding, which end in `end`. Raises ConfigError for its options."""
    for name, value in options.items():
        if name.replace("_", "-") in _FOREIGN and value != "json":
            raise ConfigError(f"encoding.{name} can't be given for a file: each message is a line of text")
    make_encoder(encoding, options, now)
    if encoding == "csv":
        end = b""  # a csv message ends in its terminator
    return made(lambda: make_encoder(encoding, options, now), end)
