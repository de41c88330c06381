"""Bugs to plant, one at a time: the simulation must find each."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Mutant(Struct, frozen=True):
    """A bug: one passage of a module, replaced."""

    name: str
    file: str
    """Path below the package."""
    before: str
    after: str
    what: str
    """Effect, and where such a bug was found in practice if it was."""
    within: int = 60
    """Number of seeds of which one must fail."""

    @property
    def module(self) -> str:
        return "tidemill." + self.file.removesuffix(".py").replace("/", ".")

    def plant(self, text: str) -> str:
        """Return the module's text with the bug. Raises ValueError unless it has the passage once."""
        if text.count(self.before) != 1:
            count = text.count(self.before)
            raise ValueError(
                f"mutant {self.name}: {self.file} has the passage {count} times: renew the mutant"
            )
        return text.replace(self.before, self.after)


MUTANTS: Final = (
    Mutant(
        "checkpoint before the commit",
        "sink/sql/sql.py",
        "            else:\n                self._apply(\n",
        "            else:\n                batch.checkpoint and self._save(batch.checkpoint)\n"
        "                self._apply(\n",
        "The checkpoint is committed before the rows: a kill in between loses them.",
        within=10,
    ),
    Mutant(
        "a retried batch applied again",
        "sink/sql/sql.py",
        "items = batch.items if self._durable is None else lacking(self._durable, batch.items)",
        "items = batch.items",
        "After a COMMIT whose answer was lost, the rows of the batch are applied a second time.",
        within=10,
    ),
    Mutant(
        "checkpoint in a transaction of its own",
        "sink/sql/sql.py",
        "        self._check_owner(reached)\n        self._begin()\n",
        "        self._check_owner(reached)\n        self._writing and self._end()\n        self._begin()\n",
        "The rows are committed before their checkpoint: a kill in between repeats them (the usual at-least-"
        "once sink).",
        within=10,
    ),
    Mutant(
        "resolved ts one too high",
        "puller/tikv/feed/region_events.py",
        "            request.resolved_ts = ts\n",
        "            request.resolved_ts = ts + 1\n",
        "A region counts as resolved at a ts at which a transaction may still commit (as in TiKV with async "
        "commit before min_commit_ts was respected).",
        within=300,
    ),
    Mutant(
        "rolled back batches are not written again",
        "sink/delivery.py",
        "            self._error = str(error)\n            self._written = self._flushed = 0\n",
        "            self._error = str(error)\n",
        "After a broken connection the sink goes on behind the batches that were rolled back.",
        within=300,
    ),
    Mutant(
        "resume skips one transaction",
        "sources/tidb.py",
        "        ts = self.rank(start.position) if start is not None else options.start_ts or self._end\n",
        "        ts = self.rank(start.position) + (1 << 18) if start is not None else "
        "options.start_ts or self._end\n",
        "A restart begins a millisecond after its checkpoint.",
        within=300,
    ),
    Mutant(
        "a transaction is cut",
        "sorter/merge.py",
        "        self._torn = last if continues else None\n",
        "        self._torn = None\n",
        "The end of a transaction that left the sorter in parts isn't sent when nothing follows.",
        within=300,
    ),
    Mutant(
        "a late commit is repeated",
        "sink/sql/sql.py",
        "            if self._database.load_checkpoint(locked=True) != self._stored:\n",
        "            if False:\n",
        "A COMMIT that the server does after its connection is lost stops the feed (tidemill's own, until "
        "the simulation found it).",
        within=300,
    ),
    Mutant(
        "an old copy in the first snapshot",
        "sources/tikv_snapshot.py",
        "        if have is not None and (have.stale or have.pending):\n",
        "        if False:\n",
        "A table that is to be loaded again before the first snapshot has ended is loaded on top of its old "
        "copy (tidemill's own, until the simulation found it).",
        within=300,
    ),
    Mutant(
        "the fastest table decides",
        "sorter/merge.py",
        "            least = min(of.values()) if are_many else self._least()\n",
        "            least = max(of.values()) if are_many else self._least()\n",
        "The sorter releases what a slower table can still precede.",
        within=10,
    ),
    Mutant(
        "an old schema",
        "mounter/tidb/history.py",
        "            table_id = self._owner_at(physical_id, ts)\n"
        "            version = self._version_at(table_id, ts)\n",
        "            table_id = self._owner_at(physical_id, ts)\n"
        "            version = self._version_at(table_id, ts - (300 << 18))\n",
        "A row is decoded by its table's definition of 300 ms before.",
        within=10,
    ),
)
