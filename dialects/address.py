"""URLs of databases."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ..config.url import PERCENT_ENCODE, port_problem, redacted
from ..errors import ConfigError


def parsed(url: str) -> URL:
    """Parse a database's URL. Raises ConfigError, which doesn't show a password."""
    try:
        found = make_url(url)
    except ArgumentError:
        raise ConfigError(f"{redacted(url)!r} is not a URL of a database") from None
    except ValueError:
        raise ConfigError(port_problem(url)) from None
    if "@" in (found.host or "") or (found.host and "@" in (found.database or "")):
        raise ConfigError(PERCENT_ENCODE)
    if found.host and "/" in (found.database or ""):
        raise ConfigError(f"the URL's path is one name, of a database, without a slash: {found.database!r}")
    return found


def path_of(url: URL, needs: str) -> Path:
    """Return the file of an embedded database's URL. Raises ConfigError that begins with `needs`."""
    path = url.database or ""
    if url.host or url.port is not None or url.username is not None:
        raise ConfigError(f"{needs}: three slashes or four, as there is no host and no user")
    if url.query:
        raise ConfigError(f"{needs}: without options after it: {', '.join(url.query)}")
    if not path or path == ":memory:" or "\0" in path:
        raise ConfigError(needs)
    return Path(path).absolute().resolve()
