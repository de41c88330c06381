"""The extension module: whether it was built, and whether it is in use."""

from __future__ import annotations

import os
from typing import Final

__all__ = ("SWITCH", "description", "in_use", "native")

SWITCH: Final = "TIDEMILL_NATIVE"
"""Environment variable: 0 switches the native decoder off. It is read when the process starts."""

try:
    from . import _native as native
except ImportError as error:
    native = None  # type: ignore[assignment]
    _why_not = f"it can't be loaded: {error}"
else:
    _why_not = f"switched off by {SWITCH}=0"

in_use: bool = native is not None and os.environ.get(SWITCH) != "0"
"""True if the decoders that are created from now on are native; tests set it."""


def description() -> str:
    """Return which decoder is in use, and why if it isn't the native one."""
    return "native" if in_use else f"python (the native decoder isn't used: {_why_not})"
