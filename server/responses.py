"""Responses of the API."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from .model.failures import ErrorBody, ErrorDetail
from .problem import CODES, Problem


def json_response(answer: object, status: int) -> Response:
    """Return a response whose body is a struct."""
    return Response(
        msgspec.json.encode(answer), status, {"Cache-Control": "no-store"}, media_type="application/json"
    )


def refusal(problem: Problem) -> Response:
    """Return the response of a refusal."""
    headers = {"WWW-Authenticate": "Bearer"} if problem.status == 401 else {}
    detail = ErrorDetail(CODES[problem.status], str(problem), problem.field)
    return Response(
        msgspec.json.encode(ErrorBody(detail)), problem.status, headers, media_type="application/json"
    )
