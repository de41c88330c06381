"""The effect of a logged statement, as far as its first words tell.

Statements that MariaDB 10.5 to 11.8 and MySQL 8.0 to 9.7 log are listed; what isn't listed isn't understood.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from .tokens import NotUnderstood, Tokens

Effect: TypeAlias = Literal["definitions", "rows", "nothing"]
"""A statement changes definitions, with rows or without; or rows; or nothing that a feed follows."""

_QUOTED_CHARACTERS: Final = 100
_ROWS: Final = frozenset({
    "INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "SELECT", "VALUES", "TABLE", "WITH", "DO", "CALL",
})  # fmt: skip
"""Queries are logged where a stored function changes data."""
_OF_TABLES: Final = frozenset({"ANALYZE", "CHECK", "CHECKSUM", "OPTIMIZE", "REPAIR"})
"""Verbs that only maintain the TABLE after them. MariaDB's ANALYZE also runs the statement after it."""
_WITHOUT_EFFECT: Final = frozenset({"FLUSH", "GRANT", "INSTALL", "REVOKE", "UNINSTALL"})
_OTHER_OBJECTS: Final = frozenset({
    "AGGREGATE", "ALGORITHM", "DEFINER", "EVENT", "FUNCTION", "JSON", "LIBRARY", "LOGFILE", "PACKAGE",
    "PROCEDURE", "RESOURCE", "ROLE", "SEQUENCE", "SERVER", "SQL", "TABLESPACE", "TEMPORARY", "TRIGGER",
    "UNDO", "USER", "VIEW",
})  # fmt: skip
"""Objects of a CREATE, ALTER or DROP without effect, or its first option."""
_OBJECTS: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {
    "CREATE": (
        frozenset({"TABLE", "DATABASE", "SCHEMA", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"}),
        _OTHER_OBJECTS,
    ),
    "ALTER": (frozenset({"TABLE", "ONLINE", "IGNORE", "DATABASE", "SCHEMA"}), _OTHER_OBJECTS | {"INSTANCE"}),
    "DROP": (
        frozenset({"TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA"}),
        _OTHER_OBJECTS | {"PREPARE", "SPATIAL"},
    ),
    "RENAME": (frozenset({"TABLE", "TABLES"}), frozenset({"USER"})),
    "SET": (frozenset(), frozenset({"PASSWORD", "DEFAULT", "ROLE"})),
}
"""Words after the verb: of statements that change definitions, and of those without effect."""


def read_effect(tokens: Tokens) -> Effect:
    """Return what a statement may change, after its SET STATEMENT ... FOR; its verb comes next then.

    Reads no more than the first words. Raises NotUnderstood for a statement that isn't listed.
    """
    tokens.skip_settings()
    while tokens.accept("("):
        pass
    verb = tokens.take()
    effect = _effect(verb.value, tokens) if verb.kind in ("word", "end") else None
    tokens.step_back_to(verb)
    if effect is None:
        words = f"{tokens.take().text} {tokens.next.text}"
        raise NotUnderstood(f"a statement that begins with {words[:_QUOTED_CHARACTERS].strip()}")
    return effect


def _effect(verb: str, tokens: Tokens) -> Effect | None:
    if verb in _ROWS:
        return "rows"
    if verb == "TRUNCATE":
        return "definitions"
    if not verb or verb in _WITHOUT_EFFECT:  # a comment is logged in place of events that are left out
        return "nothing"
    if verb in _OF_TABLES:
        tokens.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
        if tokens.accept_any("TABLE", "TABLES", "VIEW"):
            return "nothing"
        return "rows" if verb == "ANALYZE" else None
    if verb not in _OBJECTS:
        return None
    tokens.accept("OR", "REPLACE")
    followed, others = _OBJECTS[verb]
    word = tokens.take()
    if word.kind != "word":
        return None
    if word.value == "SPATIAL" and tokens.accept("REFERENCE"):
        return "nothing"
    return "definitions" if word.value in followed else "nothing" if word.value in others else None
