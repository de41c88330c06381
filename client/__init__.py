"""A client of `tidemill serve`: its answers are the server's own types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import Names

if TYPE_CHECKING:
    from .client import Client as Client
    from .connection import Refused as Refused

_NAMES = Names(__name__, {"Client": ".client", "Refused": ".connection"})
__all__ = [*_NAMES]

if not TYPE_CHECKING:
    __getattr__ = _NAMES.get
