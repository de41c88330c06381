"""The protocol of stores: contents by name, each written as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class StoredFile(NamedTuple):
    """An object in a listing."""

    name: str
    """Relative to the folder that was listed."""
    size: int
    modified_ms: int
    """Time of its last write, in Unix milliseconds."""


class Store(Protocol):
    """Contents below one prefix of a bucket, or in a directory. Names are relative to it. Any thread.

    What was written is found by every later read and list, as S3 promises since 2020. Every method raises
    Retryable if the store doesn't answer or breaks off, and SinkError if it refuses.
    """

    @property
    def name(self) -> str:
        """Canonical name, for users and to compare targets."""
        ...

    @property
    def url(self) -> str:
        """URL of the prefix, for other libraries."""
        ...

    @property
    def access(self) -> Mapping[str, str]:
        """How libraries that are based on object_store reach it: their options by name."""
        ...

    @property
    def is_remote(self) -> bool:
        """True if it may be out of reach for a while."""
        ...

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Open an object for reading at any place."""
        ...

    def check(self) -> None:
        """Raise SinkError if the store can't be used; creates what is missing of a local one."""

    def entries(self) -> list[str]:
        """Return the names at the top, of objects and folders."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects in a folder and its folders; without the folder's own name."""
        ...

    def listed(self, folder: str) -> list[StoredFile]:
        """As `names`, with sizes and times."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of an object; None if there is none."""

    def write(self, name: str, content: Any) -> None:
        """Write an object from a buffer: it appears, or is replaced, as a whole."""

    def create(self, name: str, content: bytes) -> bool:
        """Write an object if there is none of this name; return False if there is one.

        After Retryable it may have been written, or may be later.
        """
        ...

    def copy(self, name: str, to: str) -> None:
        """Give an object's content another name, too. The content of neither is changed later."""

    def publish(self, staged: str, name: str) -> None:
        """Give a staged object its name; it may stay under the staged one, too. Nothing happens if there is
        none."""

    def remove(self, name: str) -> None:
        """Remove an object, if there is one."""

    def remove_folder(self, folder: str) -> None:
        """Remove a folder with everything in it, if there is one."""


def in_parallel(threads: int, function: Callable[[T], None], arguments: Sequence[T]) -> None:
    """Call a function with each argument, in up to `threads` threads; wait for all calls, then raise the
    first error."""
    if len(arguments) == 1:
        function(arguments[0])
    elif arguments:
        with ThreadPoolExecutor(min(threads, len(arguments)), "files") as pool:
            calls = [pool.submit(function, argument) for argument in arguments]
        for call in calls:
            call.result()
