"""Bugs of snapshots, and of tables that are loaded while the feed runs."""

from __future__ import annotations

from typing import Final

from .mutant import mutant

LOADS: Final = (
    mutant(
        "an old copy in the first snapshot",
        "sources/tikv_snapshot.py",
        "        if have is not None and (have.stale or have.pending):\n",
        "        if False:\n",
        "A table that is to be loaded again before the first snapshot has ended is loaded on "
        "top of its old copy (tidemill's own, until the simulation found it).",
        within=300,
    ),
    mutant(
        "a load reads its last row again",
        "snapshot/tikv/ranges.py",
        '    return (record_prefix(info.id) + encode_int(int(key[0])) + b"\\0" if key else start), end\n',
        "    return (record_prefix(info.id) + encode_int(int(key[0])) if key else start), end\n",
        "A chunk begins with the last row of the chunk before it.",
        within=30,
    ),
    mutant(
        "a full chunk is the last one",
        "sources/tikv_loads.py",
        "        is_full = len(keys) >= CHUNK_ROWS or sum(map(len, values)) >= CHUNK_BYTES\n",
        "        is_full = len(keys) > CHUNK_ROWS or sum(map(len, values)) >= CHUNK_BYTES\n",
        "The rest of a large table isn't loaded.",
        within=30,
    ),
    mutant(
        "a load is resolved before it is read",
        "sources/tikv_loads.py",
        "            if not waiting:\n                yield Changes(NOTHING, ts - 1)\n",
        "            if not waiting:\n                yield Changes(NOTHING, ts)\n",
        "Later changes leave before the chunk that is exact at their ts.",
    ),
    mutant(
        "stuck between snapshot and log",
        "sources/tikv_loader.py",
        "                if self._waits:\n                    self._go_on()\n",
        "",
        "A load that waits for the log isn't told that the log has come to its position.",
        within=30,
        source="FLINK-39207",
    ),
    mutant(
        "the log begins where the load ends",
        "sources/tidb.py",
        "                partial(self._loaded, ts),\n",
        "                lambda: self._loaded(self._client.run(self._client.pd.tso())),\n",
        "Changes that were committed while the snapshot was read are lost.",
        within=30,
    ),
    mutant(
        "a NULL is spelt differently in a snapshot",
        "sources/tikv_snapshot.py",
        "        return Rows([inserts(reader, ts, *pairs)], count)\n",
        "        from msgspec.structs import replace as other\n"
        "        changes = inserts(reader, ts, *pairs).changes()\n"
        '        return [other(one, after=tuple("" if v is None else v for v in one.after)) '
        "for one in changes]\n",
        "The snapshot has an empty text where the log has NULL: one row in two spellings.",
        within=10,
        source="peerdb#4535, peerdb#4551",
    ),
    mutant(
        "rows of a table that was never created",
        "sink/resume_filter.py",
        "            if have is None or have == CREATED:\n                continue\n"
        "            if have.last is None:\n",
        "            if have == CREATED:\n                continue\n"
        "            if have is None or have.last is None:\n",
        "Changes of a table whose load hasn't begun are applied.",
        within=30,
    ),
    mutant(
        "a dropped table is still loaded",
        "sink/table_load.py",
        "            if other != ddl.origin_name or have.parked is not None\n",
        "            if other\n",
        "The progress keeps a table that is gone.",
    ),
    mutant(
        "a stale copy stays",
        "sink/sql/definitions.py",
        "        if replaces:\n            self._tables.drop_table(table)\n",
        "        if False:\n            self._tables.drop_table(table)\n",
        "A table is loaded again beside its old rows.",
        within=30,
    ),
    mutant(
        "any stale table is complete",
        "events/checkpoint.py",
        "    is_absent = progress is None or progress.stale or progress.pending or "
        "progress.parked is not None\n",
        "    is_absent = progress is None or progress.pending or progress.parked is not None\n",
        "Changes of a table are applied to its old copy while it waits to be loaded again.",
        within=30,
    ),
    mutant(
        "a paused table goes on",
        "sink/resume_filter.py",
        "        return self._without_parked(batch) if self._at.loading is not None else batch\n",
        "        return batch\n",
        "Changes of a paused table are applied, and again when it is loaded.",
        within=30,
    ),
)
