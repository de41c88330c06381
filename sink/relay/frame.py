"""Frames: the parts of a relay's file, each with its length and checksum."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias
from zlib import crc32

import msgspec

from ...errors import StoreError

HEADER: Final = 1
"""The file's first frame: (version, source, ts after which it begins, true if nothing was before that)."""
LAYOUT: Final = 2
"""A table, with the number by which transactions of this file name it: (number, Table)."""
TRANSACTION: Final = 3
DDL: Final = 4
MARK: Final = 5
"""The end of a group: (MARK_WORD, ts up to which everything is in the relay, checkpoint as text)."""

MARK_WORD: Final = b"\x00tidemill mark\xff"
"""Bytes by which marks are found after damage."""
VERSION: Final = 1

Mark: TypeAlias = tuple[bytes, int, str]
Header: TypeAlias = tuple[int, str, int, bool]

_HEAD: Final = Struct("<IIB")
_READ_BYTES: Final = 1 << 20
_encode = msgspec.msgpack.Encoder().encode


class Frame(NamedTuple):
    kind: int
    payload: bytes
    end: int
    """Offset in the file after it."""


class Content(NamedTuple):
    """The usable part of a file: all complete groups."""

    path: Path
    source: str
    begin_ts: int
    """The file has everything above this ts ..."""
    is_first: bool
    """True if the target was empty at that ts."""
    end_ts: int
    """... up to this one."""
    checkpoint: str
    """The text in its last mark."""
    length: int
    """Bytes up to its last mark."""


def frame(kind: int, payload: bytes) -> bytes:
    return _HEAD.pack(len(payload), crc32(payload, kind), kind) + payload


def header(source: str, begin_ts: int, *, is_first: bool) -> bytes:
    return frame(HEADER, _encode((VERSION, source, begin_ts, is_first)))


def mark(ts: int, checkpoint: str) -> bytes:
    return frame(MARK, _encode((MARK_WORD, ts, checkpoint)))


def read_frames(path: Path, length: int) -> Iterator[Frame]:
    """Yield the frames up to an offset, or up to the first one that isn't whole."""
    with path.open("rb") as file:
        end = 0
        while end < length:
            frame = _next(file, end, length)
            if frame is None:
                return
            yield frame
            end = frame.end


def _next(file: BinaryIO, offset: int, length: int) -> Frame | None:
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    size, checksum, kind = _HEAD.unpack(head)
    if size > length - offset - _HEAD.size:
        return None
    payload = file.read(size)
    if len(payload) < size or crc32(payload, kind) != checksum:
        return None
    return Frame(kind, payload, offset + _HEAD.size + size)


def scan(path: Path) -> Content | None:
    """Return the usable part of a file; None if it was only just begun.

    The last group may be torn, by the end of the process or of power. Raises StoreError for other damage.
    """
    size = path.stat().st_size
    content: Content | None = None
    source, begin_ts, is_first, end = "", 0, False, 0
    for one in read_frames(path, size):
        end = one.end
        if one.kind == HEADER:
            source, begin_ts, is_first = _header(one.payload, path)
        elif one.kind == MARK:
            _, ts, text = decode(one.payload, Mark, path)
            content = Content(path, source, begin_ts, is_first, ts, text, end)
    if end < size and _marks(path, end) > 1:
        raise StoreError(
            f"{path} is damaged at byte {end}: put back the whole file, or remove the relay to begin again"
        )
    return content


def decode(payload: bytes, shape: Any, path: Path) -> Any:
    """Decode a frame's payload. Raises StoreError if it has another shape."""
    try:
        return msgspec.msgpack.decode(payload, type=shape)
    except msgspec.MsgspecError as error:
        raise StoreError(f"{path} holds what this tidemill doesn't write: {error}") from None


def _header(payload: bytes, path: Path) -> tuple[str, int, bool]:
    version, source, begin_ts, is_first = decode(payload, Header, path)
    if version != VERSION:
        raise StoreError(f"{path} is of version {version}; this tidemill reads version {VERSION}")
    return source, begin_ts, is_first


def _marks(path: Path, after: int) -> int:
    """Count the marks after an offset. A torn group has at most one, its own."""
    count, tail = 0, b""
    with path.open("rb") as file:
        file.seek(after)
        while data := file.read(_READ_BYTES):
            data = tail + data
            count += data.count(MARK_WORD)
            tail = data[-len(MARK_WORD) + 1 :]
    return count
