"""URLs of databases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote

from ..config.url import PERCENT_ENCODE, port_problem, redacted
from ..errors import ConfigError

_URL: Final = re.compile(
    r"(?P<scheme>[\w.-]+)(?:\+(?P<driver>\w+))?://"
    r"(?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:\[(?P<ipv6>[^/?]+)\]|(?P<host>[^/:?]+))?(?::(?P<port>[^/?]*))?"
    r"(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_PORTS: Final = range(1, 1 << 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The parts of a database's URL, percent-decoded."""

    scheme: str
    driver: str = ""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    host: str = ""
    port: int | None = None
    database: str = ""
    """A name, or the path of a file."""
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options after the question mark."""


def parsed(url: str) -> Address:
    """Parse a database's URL. Raises ConfigError, which doesn't show a password."""
    match = _URL.fullmatch(url)
    if match is None:
        raise ConfigError(f"{redacted(url)!r} is not a URL of a database")
    port = match["port"] or None
    if port is not None and not (port.isdecimal() and int(port) in _PORTS):
        raise ConfigError(port_problem(url))
    host, database = match["ipv6"] or match["host"] or "", unquote(match["database"] or "")
    if "@" in host or (host and "@" in database):
        raise ConfigError(PERCENT_ENCODE)
    if host and "/" in database:
        raise ConfigError(f"the URL's path is one name, of a database, without a slash: {database!r}")
    query: dict[str, str] = {}
    for name, value in parse_qsl(match["query"] or "", keep_blank_values=True):
        if name in query:
            raise ConfigError(f"{name} is given twice in the URL")
        query[name] = value
    return Address(
        scheme=match["scheme"],
        driver=match["driver"] or "",
        user=None if match["user"] is None else unquote(match["user"]),
        password=None if match["password"] is None else unquote(match["password"]),
        host=host,
        port=None if port is None else int(port),
        database=database,
        query=query,
    )


def path_of(address: Address, needs: str) -> Path:
    """Return the file of an embedded database's URL. Raises ConfigError that begins with `needs`."""
    path = address.database
    if address.host or address.port is not None or address.user is not None:
        raise ConfigError(f"{needs}: three slashes or four, as there is no host and no user")
    if address.query:
        raise ConfigError(f"{needs}: without options after it: {', '.join(address.query)}")
    if not path or path == ":memory:" or "\0" in path:
        raise ConfigError(needs)
    return Path(path).absolute().resolve()
