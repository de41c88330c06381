"""Descriptions of a store's kvrpcpb.KeyError."""

from __future__ import annotations

from typing import Final

from ....codec.proto import Message, kvrpcpb

_WORDS: Final = ("retryable", "abort")
"""Fields that carry text of the store; the others are messages."""


def sentence(error: kvrpcpb.KeyError) -> str:
    """Return the error's name and content on one line."""
    said = [
        value if field.name in _WORDS else f"{field.name} ({_contents(value)})"
        for field, value in error.ListFields()
    ]
    return "; ".join(said) or "an error of an unknown kind"


def _contents(message: Message) -> str:
    return " ".join(line.strip() for line in str(message).splitlines())
