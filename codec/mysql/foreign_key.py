"""The foreign keys in the text of a statement."""

from __future__ import annotations

from typing import Final

from .tokens import Tokens

_CHANGING: Final = ("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT")


def changing_rules(statement: str, sql_mode: int = 0) -> list[str]:
    """Return the rules of a CREATE or ALTER TABLE by which foreign keys change rows: "ON DELETE CASCADE".

    The ON UPDATE of a column isn't one of them. Raises NotUnderstood for a quote that isn't closed.
    """
    tokens = Tokens(statement, sql_mode)
    rules = []
    while tokens.next.kind != "end":
        if not tokens.accept("ON"):
            tokens.take()
        elif event := tokens.accept_any("DELETE", "UPDATE"):
            rules += [f"ON {event} {' '.join(words)}" for words in _CHANGING if tokens.accept(*words)]
    return rules
