"""Refusals of requests, as the API answers them."""

from __future__ import annotations

import re
from typing import Final

from ..errors import CheckpointError, ConfigError, InvariantViolated, Retryable, TidemillError

CODES: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    500: "internal",
    502: "unreachable",
    503: "unavailable",
}
"""Codes of errors by HTTP status."""

_FIELD: Final = re.compile(r"(?P<field>[A-Za-z][\w-]*(?: [\w-]{1,64})?(?:(?:\.|: )[\w\[\]-]+)*)(?: = .*?)?: ")


class Problem(Exception):
    """A request that can't be carried out; `message` is a sentence for the user."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field


def problem_of(error: TidemillError) -> Problem:
    """Return the refusal for an error of an operation."""
    match error:
        case ConfigError():
            return Problem(422, str(error), field_of(str(error)))
        case CheckpointError():
            return Problem(409, str(error))
        case InvariantViolated():
            return Problem(500, str(error))
        case Retryable():
            return Problem(503, str(error))
    return Problem(502, str(error))


def field_of(message: str) -> str | None:
    """Return the key that a ConfigError's sentence begins with, such as "source.url"; None if it has none."""
    match = _FIELD.match(message)
    return match["field"] if match is not None else None
