"""Errors that Spark shows with their sentence on top of the trace."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, Final, TypeVar, cast

from ..errors import TidemillError

_Call = TypeVar("_Call", bound=Callable[..., Any])


def summarised(method: _Call) -> _Call:
    """Let errors of a method that Spark calls begin with their sentence.

    Spark shows an error as Python prints it: the first cause on top, then the trace of the next error. So the
    first cause is made a copy of the error without a trace.
    """
    if inspect.isgeneratorfunction(method):

        @wraps(method)
        def each(*args: object, **kwargs: object) -> Generator[object]:
            try:
                yield from method(*args, **kwargs)
            except TidemillError as error:
                _add_summary(error)
                raise

        return cast("_Call", each)

    @wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        try:
            return method(*args, **kwargs)
        except TidemillError as error:
            _add_summary(error)
            raise

    return cast("_Call", call)


class _Summary(TidemillError):
    """The copy; printed with the name of the error's class."""


class _Lasting:
    """Keeps an error's cause: Spark deletes it where it leaves its own lines out of the trace."""

    @property
    def __cause__(self) -> BaseException | None:
        cause: BaseException | None = _CAUSE.__get__(self)
        return cause

    @__cause__.setter
    def __cause__(self, cause: BaseException | None) -> None:
        if cause is not None:
            _CAUSE.__set__(self, cause)


_CAUSE: Final[Any] = BaseException.__dict__["__cause__"]


def _add_summary(error: BaseException) -> None:
    first = error
    while (cause := _cause(first)) is not None:
        first = cause
    if isinstance(first, _Summary):
        return
    kind = type(error)
    first.__cause__ = _named(kind, _Summary)(str(error))
    error.__class__ = _named(kind, _Lasting, kind)


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _named(kind: type, *bases: type) -> Any:
    """Return a class that is printed as `kind` is."""
    return type(kind.__name__, bases, {"__module__": kind.__module__, "__qualname__": kind.__qualname__})
