"""What a store's kvrpcpb.KeyError says, in a sentence."""

from __future__ import annotations

from typing import Any, Final

_WORDS: Final = ("retryable", "abort")
"""Those that carry a sentence of the store; the others are messages."""


def sentence(error: Any) -> str:
    """Return the error's name and what it carries, on one line."""
    said = [
        value if field.name in _WORDS else f"{field.name} ({_contents(value)})"
        for field, value in error.ListFields()
    ]
    return "; ".join(said) or "an error of a kind that isn't known here"


def _contents(message: Any) -> str:
    return " ".join(line.strip() for line in str(message).splitlines())
