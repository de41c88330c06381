"""Bugs of delivery, batches, filters, and the SQL sink."""

from __future__ import annotations

from typing import Final

from .mutant import Patch, mutant

SINK: Final = (
    mutant(
        "checkpoint before the commit",
        "sink/sql/sql.py",
        "            else:\n                self._apply(\n",
        "            else:\n                batch.checkpoint and self._save(batch.checkpoint)\n"
        "                self._apply(\n",
        "The checkpoint is committed before the rows: a kill in between loses them.",
        within=10,
    ),
    mutant(
        "checkpoint before CREATE TABLE",
        "sink/sql/sql.py",
        "                self._define(ddl)\n            else:\n",
        "                batch.checkpoint and self._save(batch.checkpoint)\n"
        "                self._define(ddl)\n            else:\n",
        "The checkpoint is above a schema change that isn't made yet: after a crash it is "
        "kept, higher than the truth.",
        within=10,
        source="ticdc#2943",
    ),
    mutant(
        "a retried batch applied again",
        "sink/sql/sql.py",
        "items = batch.items if self._durable is None else lacking(self._durable, batch.items)",
        "items = batch.items",
        "After a COMMIT whose answer was lost, the rows of the batch are applied a second time.",
        within=10,
    ),
    mutant(
        "checkpoint in a transaction of its own",
        "sink/sql/sql.py",
        "        self._check_owner(reached)\n        self._begin()\n",
        "        self._check_owner(reached)\n        self._writing and self._end()\n        self._begin()\n",
        "The rows are committed before their checkpoint: a kill in between repeats them (the "
        "usual at-least-once sink).",
        within=10,
    ),
    mutant(
        "DML at the ts of an unfinished DDL comes again",
        "sink/resume_filter.py",
        "    return [item for item in items if item.commit_ts > ts]\n",
        "    return [item for item in items if item.commit_ts >= ts]\n",
        "After a crash what is at the checkpoint's own ts, which may have a schema change to "
        "be repeated, is applied a second time.",
        within=10,
        source="ticdc#3663",
    ),
    mutant(
        "a checkpoint isn't read again",
        "sink/sql/sql.py",
        "            self._durable = None if text is None else decode_checkpoint(text, where)[0]\n",
        "            if self._durable is None:\n"
        "                self._durable = None if text is None else decode_checkpoint(text, "
        "where)[0]\n",
        "After a connection was lost, the target isn't asked what it has.",
        within=10,
    ),
    mutant(
        "a late commit is repeated",
        "sink/sql/sql.py",
        "            if self._database.load_checkpoint(locked=True) != self._stored:\n",
        "            if False:\n",
        "A COMMIT that the server does after its connection is lost stops the feed "
        "(tidemill's own, until the simulation found it).",
        within=300,
    ),
    mutant(
        "writes of a stale owner",
        "sink/sql/sql.py",
        "            if self._database.load_checkpoint(locked=True) != self._stored:\n",
        "            if False:\n",
        "Whoever writes last wins: a checkpoint is overwritten though another one has moved it.",
        Patch(
            "dialects/sqlite/sqlite.py",
            '        statement = f"UPDATE {CHECKPOINT_TABLE} SET ts=?, checkpoint=? WHERE feed=? '
            'AND ts=?"\n        return self._session.execute(statement, ts, text, self.feed, '
            "previous_ts).rowcount == 1\n",
            '        statement = f"UPDATE {CHECKPOINT_TABLE} SET ts=?, checkpoint=? WHERE feed=?"\n'
            "        return self._session.execute(statement, ts, text, self.feed).rowcount == 1\n",
        ),
        within=300,
        source="ticdc#5083",
    ),
    mutant(
        "rolled back batches are not written again",
        "sink/delivery.py",
        "            self._error = str(error)\n            self._written = self._flushed = 0\n",
        "            self._error = str(error)\n",
        "After a broken connection the sink goes on behind the batches that were rolled back.",
        within=2_000,
    ),
    mutant(
        "a checkpoint inside a transaction",
        "sink/reached.py",
        "        if self._open:\n            return None\n",
        "",
        "A batch that ends inside a large transaction has a checkpoint.",
        within=10,
    ),
    mutant(
        "a filter of one image",
        "chain/selection/runs.py",
        "    before, after = _kept(test, keeps, change.before), _kept(test, keeps, change.after)\n",
        "    after = _kept(test, keeps, change.after)\n    before = change.before if after else None\n",
        "An update is judged by the row after it: one that leaves the filter's rows stays in the target.",
        source="FLINK-39230",
    ),
    mutant(
        "NULL isn't true nor false",
        "chain/selection/runs.py",
        "            if (row := change.after or change.before) is None or (test(row) is True) is keeps\n",
        "            if (row := change.after or change.before) is None or test(row) is keeps\n",
        "Rows for which a filter's condition is unknown are dropped.",
    ),
    mutant(
        "filters don't concern a snapshot",
        "chain/selection/rule.py",
        "        is_of = self.is_partial or (op in self.kinds and not is_loaded) or self.is_whole\n",
        "        is_of = (self.is_partial or op in self.kinds) and not is_loaded or self.is_whole\n",
        "Rows that a filter drops are in the target if they were there before the feed.",
    ),
    mutant(
        "an insert and a delete are a delete",
        "sink/sql/merging.py",
        "            if chain.before is not None:\n                gone[",
        "            if change.before is not None:\n                gone[",
        "A row that comes and goes in one batch is deleted, though the target never had it.",
        Patch(
            "sink/sql/merging.py",
            "tuple([chain.before[i] for i in index])] = chain\n",
            "tuple([change.before[i] for i in index])] = chain\n",
        ),
        within=30,
    ),
    mutant(
        "a checkpoint between items of one ts",
        "sink/batch_cutter.py",
        "        return None if items and _next_is_at(self.waiting, items[-1].commit_ts) else checkpoint\n",
        "        return checkpoint\n",
        "A transaction that was committed in one phase has the ts of a schema change, of which the target "
        "is told to have both: the second one is left out.",
        killed_by="tests/sink/test_delivery.py::test_no_checkpoint_comes_between_a_ddl_and_rows_of_the_same_ts",
    ),
    mutant(
        "checkpoints at one ts are one",
        "events/checkpoint.py",
        "        if self.ts == other.ts and (self.loading != other.loading or self.stages != "
        "other.stages):\n            return False\n",
        "",
        "Progress of a load that comes without a later ts isn't stored.",
        within=30,
    ),
)
