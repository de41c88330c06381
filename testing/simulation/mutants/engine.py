"""Bugs of a feed's life: its start, its tables, its end."""

from __future__ import annotations

from typing import Final

from .mutant import mutant

ENGINE: Final = (
    mutant(
        "resume skips one transaction",
        "sources/tidb.py",
        "        ts = self.rank(start.position) if start is not None else options.start_ts or self._end\n",
        "        ts = self.rank(start.position) + (1 << 18) if start is not None else "
        "options.start_ts or self._end\n",
        "A restart begins a millisecond after its checkpoint.",
    ),
    mutant(
        "a new table isn't waited for",
        "sources/tikv.py",
        "                self._pull(table_id, [span], ts, self._context.sorter.add_table(table_id, ts))\n",
        "                late = ts + (5_000 << 18)\n"
        "                self._pull(table_id, [span], ts, "
        "self._context.sorter.add_table(table_id, late))\n",
        "The checkpoint passes a table that was just created and hasn't been heard of.",
        within=10,
        source="ticdc#5401",
    ),
    mutant(
        "a new table begins late",
        "sources/tikv.py",
        "                self._pull(table_id, [span], ts, self._context.sorter.add_table(table_id, ts))\n",
        "                late = ts + (200 << 18)\n"
        "                self._pull(table_id, [span], late, "
        "self._context.sorter.add_table(table_id, ts))\n",
        "The first changes of a new table are lost.",
        within=10,
    ),
    mutant(
        "a dropped table goes at once",
        "sources/tikv.py",
        "            for table_id in [id_ for id_, ts in self._ending.items() if ts <= resolved]:\n",
        "            for table_id in [id_ for id_, ts in self._ending.items() if ts]:\n",
        "The last changes of a table before its end aren't released.",
    ),
    mutant(
        "a heartbeat inside a transaction",
        "sources/tidb.py",
        "        if not continues and (not items or items[-1].commit_ts < resolved):\n",
        "        if not items or items[-1].commit_ts < resolved or continues:\n",
        "A part of a transaction is followed by a heartbeat at its ts.",
        within=10,
    ),
    mutant(
        "an error isn't passed on",
        "engine/feed.py",
        "        if pipeline.course.error is not None:\n            raise pipeline.course.error\n",
        "",
        "A pipeline that has failed counts as finished.",
        within=30,
    ),
    mutant(
        "the loads of tables are forgotten",
        "engine/table_changes.py",
        "    loading = load_again(loading, some) if (some := [*filter(wants, "
        "requests.load_again)]) else loading\n",
        "    loading = load_again(None, some) if (some := [*filter(wants, "
        "requests.load_again)]) else loading\n",
        "A request to load a table again makes the others count as loaded.",
        within=10,
    ),
    mutant(
        "checkpoints are freed as they are read",
        "engine/coordinator.py",
        "            self._started.sorter.acknowledge(ts)\n            self._source.acknowledged(ts)\n",
        "            self._started.sorter.acknowledge(ts)\n"
        "            self._source.acknowledged(ts + (60_000 << 18))\n",
        "Definitions of tables are pruned that rows still need.",
        within=10,
    ),
    mutant(
        "a resumed table isn't loaded",
        "engine/table_changes.py",
        "        if parking_of(loading, name) is not None:\n"
        "            loading = load_again(loading, [name])\n",
        "        if loading is not None and parking_of(loading, name) is not None:\n"
        "            loading = {**loading, name: WHOLE}\n",
        "What was changed while a table was paused is lost.",
        within=30,
    ),
)
