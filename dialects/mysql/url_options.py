"""Options in the URL of a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from .server import TlsOptions

_OF_DRIVER: Final = (
    "unix_socket",
    "bind_address",
    "read_default_file",
    "read_default_group",
    "connect_timeout",
    "read_timeout",
    "write_timeout",
)
Seconds: TypeAlias = Annotated[int, Meta(ge=1, le=31_536_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlOptions(TlsOptions):
    """Options in the URL of a MariaDB or MySQL target."""

    unix_socket: str | None = None
    """Socket of a server on this machine."""
    bind_address: str | None = None
    """Address of this machine from which to connect."""
    read_default_file: str | None = None
    """File with options, as my.cnf."""
    read_default_group: str | None = None
    """Group of that file."""
    connect_timeout: Seconds | None = None
    """Seconds until a connection must be made; without it, 10."""
    read_timeout: Seconds | None = None
    """Seconds without an answer after which a connection is given up."""
    write_timeout: Seconds | None = None
    """Seconds without progress of a request after which a connection is given up."""

    @property
    def driver(self) -> dict[str, object]:
        """Those for PyMySQL's connection."""
        values = {name: getattr(self, name) for name in _OF_DRIVER}
        return {name: value for name, value in values.items() if value is not None}
