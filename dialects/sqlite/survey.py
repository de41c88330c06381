"""Preflight checks of a SQLite target."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import URL

from ...config import Finding
from ...config.survey import writable_file
from .session import file_of


def survey(url: URL) -> Iterator[Finding]:
    """Yield findings about a file, which isn't created."""
    yield writable_file(file_of(url))
