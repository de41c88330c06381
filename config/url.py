"""Checks of URLs for common mistakes, and URLs for messages."""

from __future__ import annotations

import re
from typing import Final

PERCENT_ENCODE: Final = (
    "the user name or password has a character that means something else in a URL: percent-encode it "
    "(/ is %2F, # is %23, ? is %3F, @ is %40)"
)

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*:/*")
_SECRET: Final = re.compile(r"((?:password|passwd|secret[a-z_]{0,32}|token)=)[^&]*", re.IGNORECASE)


def redacted(url: str) -> str:
    """Return a URL, or what was meant as one, without its user and password: "mysql://…@host"."""
    login, sign, place = url.rpartition("@")
    scheme = _SCHEME.match(login)
    shown = f"{scheme[0] if scheme else ''}…@{place}" if sign else url
    return _SECRET.sub(r"\1…", shown)


def port_problem(url: str) -> str:
    """Return why the port of a URL can't be read; a password is never part of the answer."""
    place = url.partition("://")[2]
    _, sign, server = re.split("[/?#]", place, maxsplit=1)[0].rpartition("@")
    if not sign and "@" in place:
        return PERCENT_ENCODE
    host, _, port = server.rpartition(":")
    if sign:
        return f"{port!r}, the port of {host}, is not a number from 1 to 65535"
    return (
        f"the port of {host!r} is not a number from 1 to 65535; if that is a user with a password, "
        "add @ and the host"
    )
