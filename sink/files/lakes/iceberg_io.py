"""Files of Iceberg's metadata in the store of the data files: durable, as a whole, with its errors."""

from __future__ import annotations

from io import BytesIO
from typing import Final

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.typedef import EMPTY_DICT, Properties

from ....errors import SinkError
from ..store import Store

STORE: Final = "tidemill.store"
"""Property of a catalog: the Store itself."""


def location_of(store: Store) -> str:
    """Return the URL of a store's prefix, as tables contain it."""
    return store.url if store.is_remote else f"file://{store.url}"


class StoreIO(FileIO):
    """Pyiceberg's access to the Store in a catalog's properties. Any thread; raises as Store does."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._store: Store = properties[STORE]

    def new_input(self, location: str) -> InputFile:
        return _Input(self._store, location)

    def new_output(self, location: str) -> OutputFile:
        return _Output(self._store, location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        url = location if isinstance(location, str) else location.location
        self._store.remove(name_of(self._store, url))


class _Input(InputFile):
    def __init__(self, store: Store, location: str) -> None:
        super().__init__(location)
        self._store: Final = store

    def _content(self) -> bytes | None:
        return self._store.read(name_of(self._store, self.location))

    def __len__(self) -> int:
        return len(self._content() or b"")

    def exists(self) -> bool:
        return self._content() is not None

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002
        content = self._content()
        if content is None:
            raise SinkError(f"{self.location} is missing: put back a copy of all that was here")
        return BytesIO(content)


class _Output(OutputFile):
    def __init__(self, store: Store, location: str) -> None:
        super().__init__(location)
        self._store: Final = store

    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        return self.to_input_file().exists()

    def to_input_file(self) -> InputFile:
        return _Input(self._store, self.location)

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: ARG002
        # Each name contains a new UUID, so there is no file that this one could replace.
        return _Written(self._store, name_of(self._store, self.location))


class _Written:
    """A file that is written to its store when it is closed."""

    def __init__(self, store: Store, name: str) -> None:
        self._store: Final = store
        self._name: Final = name
        self._content = BytesIO()

    def write(self, b: bytes) -> int:
        return self._content.write(b)

    def tell(self) -> int:
        return self._content.tell()

    def close(self) -> None:
        if not self._content.closed:
            content = self._content.getvalue()
            self._content.close()
            self._store.write(self._name, content)

    def __enter__(self) -> _Written:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self.close()


def name_of(store: Store, location: str) -> str:
    """Return the name in the store of a file at a location. Raises SinkError if it is elsewhere."""
    prefix = f"{location_of(store)}/"
    if not location.startswith(prefix):
        raise SinkError(
            f"{location} is outside of {prefix}: the catalog's table is another program's or feed's: remove "
            "it, or give another catalog or namespace"
        )
    return location.removeprefix(prefix)
