"""Preflight checks of a SQLite target."""

from __future__ import annotations

from collections.abc import Iterator

from ...config import Finding
from ...config.survey import writable_file
from ..address import Address
from ..options import SqliteOptions
from .session import file_of


def survey(address: Address, options: SqliteOptions) -> Iterator[Finding]:  # noqa: ARG001
    """Yield findings about a file, which isn't created."""
    yield writable_file(file_of(address))
