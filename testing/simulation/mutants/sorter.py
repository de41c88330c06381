"""Bugs of the sorter and its store."""

from __future__ import annotations

from typing import Final

from .mutant import Patch, mutant

SORTER: Final = (
    mutant(
        "the fastest table decides",
        "sorter/merge.py",
        "            least = min(of.values()) if are_many else self._least()\n",
        "            least = max(of.values()) if are_many else self._least()\n",
        "The sorter releases what a slower table can still precede.",
        within=10,
    ),
    mutant(
        "a transaction is cut",
        "sorter/merge.py",
        "        self._torn = last if continues else None\n",
        "        self._torn = None\n",
        "The end of a transaction that left the sorter in parts isn't sent when nothing follows.",
        within=2_000,
    ),
    mutant(
        "each part of a transaction is whole",
        "sorter/merge.py",
        "        continues = last == following[0]\n",
        "        continues = False\n",
        "A transaction that leaves the sorter in parts counts as several: a checkpoint comes inside it.",
        within=10,
    ),
    mutant(
        "resolved above what has left",
        "sorter/merge.py",
        "        resolved = min(progress.resolved, following[0] - 1)\n",
        "        resolved = progress.resolved\n",
        "With a part of the changes below the resolved ts, all of them count as sent (a "
        "checkpoint above its table's resolved ts: tiflow#9830).",
        within=10,
    ),
    mutant(
        "an open run is forgotten",
        "sorter/merge.py",
        "            self._tier.hold(run)\n            self._push(run)\n",
        "            self._tier.hold(run)\n",
        "What is left of a run above the resolved ts goes back to memory, and isn't queued again.",
        within=30,
    ),
    mutant(
        "sent changes are put back",
        "sorter/merge.py",
        "                parts.append(block.slice(start, end))\n                cursor.at = end\n",
        "                parts.append(block.slice(start, end))\n",
        "A cursor doesn't move: what was sent from a run is in it again.",
        within=10,
    ),
    mutant(
        "the last read decides",
        "sorter/merge.py",
        "            bound = min(bound, next(iter(self._reading)).first)\n",
        "            bound = min(bound, next(reversed(self._reading)).first)\n",
        "Changes leave before a run that is still being read from disk.",
        within=30,
    ),
    mutant(
        "closed runs don't hold back",
        "sorter/merge.py",
        "        if self._waiting:\n            bound = min(bound, self._waiting[0][0])\n"
        "        if self._reading:",
        "        if self._reading:",
        "Changes leave before a run for which there was no room.",
        within=10,
    ),
    mutant(
        "the first heap decides",
        "sorter/unified/heap.py",
        "            least = min(self._passed)\n",
        "            least = max(self._passed)\n",
        "A resolved ts takes effect when the first of the heaps has flushed.",
        within=30,
    ),
    mutant(
        "a heap isn't flushed",
        "sorter/unified/heap.py",
        "            case Broadcast(number):\n                self._flush()\n",
        "            case Broadcast(number):\n",
        "A heap passes a resolved ts and keeps the changes below.",
    ),
    mutant(
        "blocks at one offset",
        "sorter/unified/file.py",
        "            at += len(block)\n",
        "",
        "The blocks of one write are all looked for where the first one is.",
    ),
    mutant(
        "a run is taken while it is flushed",
        "sorter/tier.py",
        "            if block is None or run.flushing:\n                return None\n",
        "            if block is None:\n                return None\n",
        "A run is given away while its writer has it, and is freed twice.",
        within=10,
    ),
    mutant(
        "a merged run comes several times",
        "sorter/tier.py",
        "            run.replacements.clear()\n",
        "",
        "Each of the runs that were merged is replaced by all blocks of the merge.",
        within=10,
    ),
    mutant(
        "the last key isn't read",
        "sorter/db/layout.py",
        '        pairs = store.iterate(place.window, place.lower, place.upper + b"\\0")\n',
        "        pairs = store.iterate(place.window, place.lower, place.upper)\n",
        "The last change of a run is outside of the range that is read.",
        within=10,
    ),
    mutant(
        "an iterator's error is its end",
        "store/store.py",
        "            try:\n                iterator.status()\n"
        "            except Exception as error:\n"
        '                raise StoreError(f"store {self._path} can\'t be read: {error}") from '
        "error\n",
        "",
        "An iterator that can't read on looks as if it had come to its end, and the changes "
        "after it are lost.",
        Patch(
            "sorter/db/layout.py",
            "        if len(blocks) < place.keys:\n"
            '            raise StoreError(f"{place.keys - len(blocks)} changes are missing")\n',
            "",
        ),
        within=300,
        source="ticdc#5005",
    ),
    mutant(
        "an unreadable run is empty",
        "sorter/db/reader.py",
        "            raise StoreError(\n"
        "                f\"{run} can't be read back from {self._store.path} "
        '({place.window.name}): {error}"\n            ) from error\n',
        "            from ...codec.blocks import NOTHING as block\n            str(error)\n",
        "A run whose block is missing or damaged counts as one without changes.",
        within=30,
    ),
    mutant(
        "an unread checksum",
        "sorter/db/layout.py",
        "        return block_from_bytes(value)\n",
        '        crc = __import__("zlib").crc32(value[8:]).to_bytes(4, "little")\n'
        "        return block_from_bytes(value[:4] + crc + value[8:])\n",
        "A damaged value is decoded as it is.",
        within=10,
    ),
)
