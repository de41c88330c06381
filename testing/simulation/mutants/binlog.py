"""Bugs about binlogs: of GTIDs, of the stream, and of the loads beside it."""

from __future__ import annotations

from typing import Final

from .mutant import Patch, mutant

BINLOG: Final = (
    mutant(
        "a hole in a GTID set is closed",
        "codec/mysql/gtid.py",
        "        if at and intervals[at - 1][1] == number - 1:\n",
        "        if at:\n",
        "A set with holes loses them, so a dump doesn't have the transactions in them.",
        source="FLINK-39149",
        within=300,
        world="binlog",
    ),
    mutant(
        "a frozen GTID set",
        "puller/mysql/cursor.py",
        "            else:  # without a GTID: the set before the next position isn't known\n"
        "                self._gtids = None\n",
        "",
        "With gtid_mode = ON_PERMISSIVE, transactions without a GTID leave a set in the "
        "position that isn't true any more.",
        source="dbz#2519",
        within=300,
        world="binlog",
    ),
    mutant(
        "a seek longer than the keepalive",
        "puller/mysql/stream.py",
        "            if self._silent_seconds > 3 * self._options.heartbeat_seconds + 1:\n",
        "            if self._silent_seconds > self._options.heartbeat_seconds / 2:\n",
        "A server that looks for the position of a dump is given up before its first "
        "heartbeat, and looks again from the start.",
        source="dbz#2266",
        within=10,
        world="binlog",
    ),
    mutant(
        "a damaged record of the history",
        "mounter/mysql/history.py",
        '            raise StoreError(f"{path} is damaged at byte {offset}: {_REMOVE}") from None\n',
        "            return\n",
        "The definitions after a damaged record are dropped without a word, and nobody sees that a target "
        "has passed them.",
        Patch("mounter/mysql/history.py", "        if last_ts < self._passed:\n", "        if False:\n"),
        source="dbz#2221",
        within=100,
        world="binlog",
    ),
    mutant(
        "a silent GTID domain",
        "codec/mysql/gtid.py",
        "            number <= self._last.get(domain, (0, -1))[1] for domain, (_, number) in "
        "other._last.items()\n",
        "            number < self._last.get(domain, (0, -1))[1] for domain, (_, number) in "
        "other._last.items()\n",
        "A server isn't held for up to date while one of its MariaDB domains has nothing new.",
        source="maxwell#2150",
        within=100,
        world="binlog",
    ),
    mutant(
        "chunk keys compared by their code points",
        "events/collation.py",
        '    "utf8mb4_general_ci": _GENERAL_CI,\n',
        '    "utf8mb4_general_ci": str,\n',
        "Keys are compared by their characters, and by the server without regard to case: "
        "rows are missing between two chunks, or come twice.",
        source="flink-cdc b8edfcfd3",
        within=30,
        world="binlog",
    ),
    mutant(
        "changes beside a chunk are lost",
        "puller/mysql/table_loads.py",
        "                for entry in entries:\n"
        "                    self._out.add(entry.kind, entry.value, entry.layout)\n",
        "",
        "Changes that were logged while a chunk was read aren't laid over its rows: they are set back.",
        within=30,
        world="binlog",
    ),
    mutant(
        "two commits of one ts",
        "puller/mysql/commit_clock.py",
        "        if ts <= self.last or (",
        "        if ts < self.last or (",
        "Transactions of one second get one ts, of which a target has both or none.",
        within=10,
        world="binlog",
    ),
    mutant(
        "the offset of the former file",
        "puller/mysql/cursor.py",
        "        self._offset = _u64(event, HEADER)[0]\n",
        "",
        "After a rotation the position is one of the former file in the next one.",
        within=10,
        world="binlog",
    ),
    mutant(
        "definitions of the present",
        "sources/mysql.py",
        "self._history.restore(start.ts if start is not None and start.position else 0)",
        "self._history.restore(1 << 62 if start is not None and start.position else 0)",
        "After a restart, rows of before a schema change are read by the definition after it.",
        within=2_000,
        world="binlog",
    ),
    mutant(
        "a chunk before its end",
        "puller/mysql/table_loads.py",
        "            while load.read and place(load.read[0].end) <= here:\n",
        "            while load.read:\n",
        "A chunk comes before the log has passed its view: a target has rows of later transactions.",
        within=300,
        world="binlog",
    ),
    mutant(
        "a chunk inside a transaction",
        "puller/mysql/table_loads.py",
        "        self._take(wait_seconds)\n        if self._decoder.is_between:\n",
        "        self._take(wait_seconds)\n        if True:\n",
        "A chunk comes while a transaction is received in parts.",
        within=10,
        world="binlog",
    ),
    mutant(
        "a refused chunk is passed over",
        "puller/mysql/table_loads.py",
        "                if not self._is_delivered(load, load.read.popleft()):\n"
        "                    self._again(load)\n",
        "                self._is_delivered(load, load.read.popleft())\n",
        "A load goes on after a chunk that couldn't be delivered, and its rows are missing.",
        within=2_000,
        world="binlog",
    ),
    mutant(
        "a commit clock that begins at 0",
        "puller/mysql/pull.py",
        "CommitClock(start.ts if start else 0, sink_checkpoints, lane)",
        "CommitClock(0, sink_checkpoints, lane)",
        "A restarted feed gives timestamps below its checkpoint, and takes the transactions for done.",
        survives=(
            "The clock is raised to the checkpoint of each sink where the log passes its position, and the "
            "feed starts at one of them."
        ),
        world="binlog",
    ),
    mutant(
        "a commit clock below the checkpoint",
        "puller/mysql/pull.py",
        "CommitClock(start.ts if start else 0, sink_checkpoints, lane)",
        "CommitClock(0, sink_checkpoints, lane)",
        "The same, and the clock isn't raised to the checkpoints of the sinks either.",
        Patch(
            "puller/mysql/commit_clock.py",
            "            self.raise_to(ts)\n            self._sink_checkpoints.pop()\n",
            "            self._sink_checkpoints.pop()\n",
        ),
        within=10,
        world="binlog",
    ),
    mutant(
        "a part is sent again",
        "puller/mysql/transactions.py",
        "        if number > self._handed:\n",
        "        if True:\n",
        "A transaction that is received again after a part of it was sent has that part twice: its last rows "
        "leave without the position that ends it.",
        within=10,
        world="binlog",
    ),
    mutant(
        "a transaction is numbered on",
        "puller/mysql/transactions.py",
        "        self._number = self._bytes = 0\n        if self._savepoints:\n",
        "        self._bytes = 0\n        if self._savepoints:\n",
        "The same, and its changes have other numbers than before, so the sorter takes them for others.",
        within=30,
        world="binlog",
    ),
    mutant(
        "an interrupted transaction stays",
        "puller/mysql/transactions.py",
        "        del self._changes[self._whole :]\n        self.is_open = False\n",
        "        self.is_open = False\n",
        "What was received of a transaction before the connection was lost stays when it comes again.",
        within=2_000,
        world="binlog",
    ),
    mutant(
        "the time before a view",
        "puller/mysql/snapshot.py",
        "                self._begin(follows, known)\n",
        "                self.server = identify(self._session)\n"
        "                self._begin(follows, known)\n",
        "The clock begins at a time before the file of its position was created: the feed takes the file for "
        "another one (tidemill's own, until the simulation found it).",
        Patch(
            "puller/mysql/snapshot.py",
            "            self.server: Server = identify(self._session)\n",
            "",
        ),
        within=100,
        world="binlog",
    ),
    mutant(
        "definitions that aren't synced",
        "mounter/mysql/history.py",
        '        failpoint.reach("definitions.written")\n        os.fsync(self._file.fileno())\n',
        '        failpoint.reach("definitions.written")\n',
        "A crash loses definitions whose tables' rows the target has: later rows can't be read.",
        within=2_000,
        world="binlog",
    ),
    mutant(
        "a torn definition is damage",
        "mounter/mysql/history.py",
        "        if end > len(content) or not any(content[offset:]):",
        "        if not any(content[offset:]):",
        "A feed doesn't start again after a crash while it wrote a definition.",
        within=300,
        world="binlog",
    ),
    mutant(
        "zeros are damage",
        "mounter/mysql/history.py",
        "        if end > len(content) or not any(content[offset:]):",
        "        if end > len(content):",
        "A feed doesn't start again if the disk has zeros where a definition wasn't written.",
        within=2_000,
        world="binlog",
    ),
    mutant(
        "a load at another server's position",
        "puller/mysql/binlog.py",
        " or not self._cursor.is_placed\n",
        "\n",
        "After a failover, ends of chunks are compared with a position of the former server's log: a load "
        "doesn't go on (tidemill's own, until the simulation found it).",
        within=300,
        world="binlog",
    ),
    mutant(
        "a place that no heartbeat tells",
        "puller/mysql/binlog.py",
        "                if kind == HEARTBEAT and not self._out.is_begun:\n",
        "                if False:\n",
        "A load after a failover waits for the next transaction (tidemill's own, until the simulation found "
        "it).",
        within=100,
        world="binlog",
    ),
    mutant(
        "the former server's position",
        "puller/mysql/stream.py",
        'position.by_gtid or position.server not in ("", self.server.identity)\n',
        "position.by_gtid\n",
        "After a failover, the log is read from the file and offset of the former server.",
        within=10,
        world="binlog",
    ),
)
