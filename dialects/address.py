"""URLs of databases."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ..config.url import PERCENT_ENCODE
from ..errors import ConfigError


def parsed(url: str) -> URL:
    """Parse a database's URL. Raises ConfigError, which doesn't show a password."""
    try:
        found = make_url(url)
    except ArgumentError:
        raise ConfigError(f"{url!r} is not a URL of a database") from None
    except ValueError:
        reason = PERCENT_ENCODE if "@" in url else f"{url!r} has a port that is not a number"
        raise ConfigError(reason) from None
    if "@" in (found.host or "") or (found.host and "@" in (found.database or "")):
        raise ConfigError(PERCENT_ENCODE)
    if found.host and "/" in (found.database or ""):
        raise ConfigError(f"the URL's path is one name, of a database, without a slash: {found.database!r}")
    return found
