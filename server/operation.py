"""Declarations of the API's operations, from which routes, checks of requests and OpenAPI's document come.

An operation is a method of `Api`. Its parameters are the names in the path, and `body`, `query` and `by` if
it needs them, with their types; its result's type is the response's.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, get_type_hints

import msgspec

BASE: Final = "/api/v1"
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]
F = TypeVar("F", bound=Callable[..., object])

_NAMES: Final = re.compile(r"\{(\w+)(?::\w+)?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path."""

    name: str
    method: Method
    path: str
    """Path with names in braces, as Starlette has it."""
    status: int
    """Status of a success."""
    described: str
    call: Callable[..., object]
    answer: Any
    """Type of the response."""
    parameters: dict[str, Any]
    """Types of the names in the path."""
    body: Any = None
    """Type of the request's body; None: it has none."""
    query: Any = None
    """Struct of the query's parameters; None: there are none."""
    wants_by: bool = False
    is_open: bool = False
    """True if it needs no token."""
    media: str = JSON
    """Type of the response's body; other than JSON, the answer is text or a stream."""
    is_slow: bool = False
    """True if it waits for databases: then it runs in other threads than the rest."""

    @property
    def is_view(self) -> bool:
        """True if it looks at this process only, and answers all clients alike."""
        return self.method == "GET" and not (self.is_slow or self.is_open or self.media == EVENTS)

    @property
    def documented_path(self) -> str:
        return _NAMES.sub(r"{\1}", self.path)

    @property
    def body_is_optional(self) -> bool:
        return self.body is not None and not _required(self.body)


def operation(
    method: Method,
    path: str,
    status: int = 200,
    *,
    base: str = BASE,
    is_open: bool = False,
    is_slow: bool = False,
    media: str = JSON,
) -> Callable[[F], F]:
    """Declare a method of `Api` as an operation."""

    def declare(call: F) -> F:
        _declared[call] = _Declared(method, base + path, status, is_open, is_slow, media)
        return call

    return declare


class _Declared(NamedTuple):
    method: Method
    path: str
    status: int
    is_open: bool
    is_slow: bool
    media: str


_declared: Final[dict[Callable[..., object], _Declared]] = {}


def operations(*apis: object) -> list[Operation]:
    """Return the operations of these objects, in the order of their declaration."""
    declared_operations = []
    for api in apis:
        for function in vars(type(api)).values():
            if inspect.isfunction(function) and (declared := _declared.get(function)) is not None:
                hints = get_type_hints(function, include_extras=True)
                names = _NAMES.findall(declared.path)
                declared_operations.append(
                    Operation(
                        name=function.__name__,
                        **declared._asdict(),
                        described=inspect.getdoc(function) or "",
                        call=function.__get__(api),
                        answer=hints["return"],
                        parameters={name: hints[name] for name in names},
                        body=hints.get("body"),
                        query=hints.get("query"),
                        wants_by="by" in hints,
                    )
                )
    return declared_operations


def _required(body: object) -> bool:
    info = msgspec.inspect.type_info(body)
    if isinstance(info, msgspec.inspect.StructType):
        return any(field.required for field in info.fields)
    return True
