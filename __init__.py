"""tidemill: ordered, whole transactions of a live database, inside your process."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .embedded import OpenFeed as OpenFeed
    from .embedded import follow as follow
    from .embedded import open_feed as open  # noqa: A004, F401
    from .errors import Fatal as Fatal
    from .errors import InvariantViolated as InvariantViolated
    from .errors import Retryable as Retryable
    from .errors import TidemillError as TidemillError
    from .events import Ddl as Ddl
    from .events import RowChange as RowChange
    from .events import Table as Table
    from .events import Transaction as Transaction

__version__ = "0.1.0"

# Lazy (PEP 562): importing one stage must not import all of them, and an eager root makes test
# runners that start inside the package import every module twice.
_HOMES = {
    "OpenFeed": ".embedded",
    "follow": ".embedded",
    "open": ".embedded",
    "Fatal": ".errors",
    "InvariantViolated": ".errors",
    "Retryable": ".errors",
    "TidemillError": ".errors",
    "Ddl": ".events",
    "RowChange": ".events",
    "Table": ".events",
    "Transaction": ".events",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), "open_feed" if name == "open" else name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
