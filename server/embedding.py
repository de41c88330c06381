"""The application for feeds that a program runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from ..actors import SystemClock
from ..config.token import read_tokens
from ..embedded import OpenFeed
from ..engine.feed import Feed
from .asgi import application
from .hosted import GivenFeed
from .registry import Registry
from .security import Access


def app(
    feeds: Iterable[Feed | OpenFeed[Any]],
    *,
    token_file: str | Path | None = None,
    allowed_hosts: Collection[str] = (),
) -> ASGIApp:
    """Return an ASGI application with the API, the page and the metrics of feeds that the program runs.

    It may be mounted below a path. The program's own server decides who can connect. Without a token, only
    requests to names of loopback and `allowed_hosts` are answered. A feed's history has the states that
    requests have found. Raises ConfigError.
    """
    clock = SystemClock()
    hosted = [GivenFeed(one.feed if isinstance(one, OpenFeed) else one, {}, clock) for one in feeds]
    registry = Registry(hosted, clock=clock)
    tokens = read_tokens(Path(token_file), "token_file") if token_file is not None else {}
    return application(registry, Access(tokens=tokens, hosts=frozenset(allowed_hosts))).asgi
