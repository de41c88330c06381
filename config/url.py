"""Checks of URLs for common mistakes."""

from __future__ import annotations

from typing import Final

PERCENT_ENCODE: Final = (
    "the user name or password has a character that means something else in a URL: percent-encode it "
    "(/ is %2F, # is %23, ? is %3F, @ is %40)"
)
