"""Bugs of schemas, schema changes and decoding."""

from __future__ import annotations

from typing import Final

from .mutant import mutant

MOUNTER: Final = (
    mutant(
        "an old schema",
        "mounter/tidb/history.py",
        "            table_id = self._owner_at(physical_id, ts)\n"
        "            version = self._version_at(table_id, ts)\n",
        "            table_id = self._owner_at(physical_id, ts)\n"
        "            version = self._version_at(table_id, ts - (300 << 18))\n",
        "A row is decoded by its table's definition of 300 ms before.",
        within=10,
    ),
    mutant(
        "a cached decoder",
        "mounter/tidb/mounter.py",
        "                        self._readers.pop(table_prefix(physical_id), None)\n",
        "                        table_prefix(physical_id)\n",
        "Rows after a schema change are decoded by the definition before it (Unknown column: ticdc#5401).",
        within=10,
    ),
    mutant(
        "the definition in force is pruned",
        "mounter/tidb/timeline.py",
        "    return timeline[max(0, bisect_right(timeline, ts, key=_since_of) - 1) :]\n",
        "    return timeline[bisect_right(timeline, ts, key=_since_of) :]\n",
        "Once a schema change is acknowledged, its table's definition is dropped too.",
        within=10,
    ),
    mutant(
        "a truncated table stays",
        "mounter/tidb/effects.py",
        "        yield DropTable(job.table_id)  # truncated or repartitioned: the same table "
        "with another id\n",
        "        pass\n",
        "After TRUNCATE the schema has the table twice, by both ids.",
    ),
    mutant(
        "a schema change is whole at its ts",
        "mounter/tidb/items.py",
        "                    add(replace(content, position=position, last=last))\n",
        "                    add(replace(content, position=str(commit_ts), last=True))\n",
        "A schema change and rows of one ts are two transactions: a crash between them loses the rows.",
        survives=(
            "The rows at that ts are those of a table that is loaded, and the checkpoint between "
            "the two says that it has none yet: it is loaded again."
        ),
    ),
    mutant(
        "the chunk of the open transaction is dropped",
        "mounter/tidb/items.py",
        "        if chunk is not None and not last:\n            return replace(chunk, loaded=CREATED)\n",
        "        if chunk is not None and not last:\n            self._chunk = None\n"
        "            return replace(chunk, loaded=CREATED)\n",
        "A table that is loaded in several parts of a transaction is never complete.",
        within=30,
    ),
    mutant(
        "a schema change of the first schema",
        "puller/tikv/ddl.py",
        "        if job.is_done and 0 < job.schema_version <= self._schema_version:\n",
        "        if job.is_done and 0 < job.schema_version <= self._schema_version + 1:\n",
        "The first schema change after a start counts as known.",
        within=10,
    ),
    mutant(
        "a default for new rows only",
        "codec/tidb/field.py",
        "        if column.origin_default is None:\n",
        "        if column.origin_default is None or column.flags & ColumnFlag.NOT_NULL:\n",
        "Rows from before ADD COLUMN have zero in place of the default.",
        within=30,
    ),
)
