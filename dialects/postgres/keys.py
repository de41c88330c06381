"""Keys of the tables in a PostgreSQL target by which transactions conflict.

Foreign keys are enforced here, and may cascade: a change of a row must not overtake one of a row that refers
to it, or that it refers to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...events import Table
from ..keys import Key, KeyPart, TableKeys
from .session import PostgresSession
from .tables import Tables

_CLASS: Final = """
SELECT c.oid, c.relkind = 'r' AND NOT c.relhassubclass AND NOT c.relispartition FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""
_INDEXES: Final = """
SELECT i.indpred IS NULL AND i.indexprs IS NULL AND NOT i.indisexclusion
    AND coalesce(to_jsonb(i)->>'indnullsnotdistinct', 'false') = 'false'
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_opclass AS o
        WHERE o.oid = ANY(i.indclass) AND NOT o.opcdefault)
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_collation AS o
        WHERE o.oid = ANY(i.indcollation) AND NOT o.collisdeterministic),
    ARRAY(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY AS k(number, place)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
        WHERE k.place <= i.indnkeyatts ORDER BY k.place)
FROM pg_catalog.pg_index AS i WHERE i.indrelid = %s AND (i.indisunique OR i.indisexclusion)
"""
_FOREIGN_KEYS: Final = """
SELECT k.conrelid, k.confrelid, n.nspname::text, p.relname::text,
    ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS c(number, n)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = c.number ORDER BY c.n),
    ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS c(number, n)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = c.number ORDER BY c.n),
    NOT EXISTS (SELECT 1 FROM pg_catalog.pg_attribute AS a
        JOIN pg_catalog.pg_collation AS o ON o.oid = a.attcollation AND NOT o.collisdeterministic
        WHERE (a.attrelid = k.conrelid AND a.attnum = ANY(k.conkey))
        OR (a.attrelid = k.confrelid AND a.attnum = ANY(k.confkey)))
    AND NOT EXISTS (SELECT 1 FROM unnest(k.conkey, k.confkey) AS c(own, other)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = c.own
        JOIN pg_catalog.pg_attribute AS b ON b.attrelid = k.confrelid AND b.attnum = c.other
        WHERE a.atttypid <> b.atttypid)
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_class AS p ON p.oid = k.confrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = p.relnamespace
WHERE k.contype = 'f' AND (k.conrelid = %s OR k.confrelid = %s)
"""


def keys_of(session: PostgresSession, tables: Tables, table: Table) -> TableKeys:
    """Return the keys of a table's copy; none are unique if any of them isn't one of plain columns whose
    types are those of the source and whose values are equal only to themselves."""
    schema, name = tables.schema_of((table.schema, table.name)), table.name
    here = f"{schema}.{name}"
    rows = session.rows(_CLASS, schema, name)
    if not rows:
        return TableKeys(here)
    ((oid, is_plain),) = rows
    columns = {column.name: column.type for column in tables.find((table.schema, table.name))}
    known = {
        column.name: KeyPart(index)
        for index, column in enumerate(table.columns)
        if columns.get(column.name) == tables.type_of(column)
    }

    def key(of: str, names: Sequence[str], own: Sequence[str], *, is_exact: bool = True) -> Key | None:
        """Return the key of these columns, whose values are those of `own` here; None if it isn't known."""
        if not (is_exact and own and known.keys() >= set(own)):
            return None
        return Key(f"{of} ({', '.join(names)})", tuple(known[column] for column in own))

    mine = [table.columns[i].name for i in table.key]
    keys = [key(here, mine, mine)]
    keys += [key(here, names, names, is_exact=exact) for exact, names in session.rows(_INDEXES, oid)]
    references: list[Key] = []
    shared: set[str] = set()
    taken: set[str] = set()
    for child, parent, *of, inner, outer, exact in session.rows(_FOREIGN_KEYS, oid, oid):
        full_name = ".".join(of)
        shared.add(full_name)
        if parent == oid:
            keys.append(key(here, outer, outer))
        if child == oid:
            if (reference := key(full_name, outer, inner, is_exact=exact)) is None:
                taken.add(full_name)
            else:
                references.append(reference)
    found_keys = {one.name: one for one in keys if one is not None}
    is_known = is_plain and None not in keys
    unique = tuple(found_keys.values()) if is_known else ()
    return TableKeys(here, unique, tuple(references), tuple(shared - taken), tuple(taken))
