"""Refusals."""

from __future__ import annotations

from msgspec import Struct


class ErrorDetail(Struct, frozen=True):
    """The reason why a request was refused."""

    code: str
    """Machine-readable reason, such as "not_found"."""
    message: str
    field: str | None = None
    """Key of the body or the query that is wrong, such as "source.url"; null if none is."""


class ErrorBody(Struct, frozen=True):
    """Body of every response with a status of 400 or above."""

    error: ErrorDetail
