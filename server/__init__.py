"""Many feeds in one process: an HTTP API, a page and metrics, alone or in another application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import Names

if TYPE_CHECKING:
    from .embedding import app as app

_NAMES = Names(__name__, {"app": ".embedding"})
__all__ = [*_NAMES]

if not TYPE_CHECKING:
    __getattr__ = _NAMES.get
