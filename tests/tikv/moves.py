"""Random statements of a TiDB after which its tables have rows that no transaction wrote."""

from __future__ import annotations

from random import Random

from tidemill.emulator.sql.sql import Tidb

PARTITIONS = "partition a values less than (%d), partition b values less than maxvalue"
KEYS = 1_000


class Moves:
    """Tables of `id int primary key, n varchar(20)` in shop, which a feed follows, and in depot."""

    def __init__(self, tidb: Tidb, seed: int, rows: int = 40) -> None:
        self._tidb = tidb
        self._random = Random(seed)
        self._next = 0
        for database in ("shop", "depot"):
            tidb.execute(f"create database if not exists {database}")
        for number in range(4):
            self._create(f"shop.m{number}")
        for number in range(2):
            self._create(f"depot.m{number + 4}")
            self._create(f"shop.p{number}", f"partition by range (id) ({PARTITIONS % (KEYS // 2)})")
        self._dropped: list[str] = []
        self.write(rows)

    @property
    def names(self) -> list[str]:
        """The tables, by qualified name."""
        return [
            f"{database}.{table.info.name}"
            for database in ("shop", "depot")
            for table in self._tidb.schema.tables(database)
            if table.info.name[0] in "mp"
        ]

    def _create(self, name: str, partition: str = "") -> None:
        self._tidb.execute(f"create table {name} (id int primary key, n varchar(20)) {partition}")

    def write(self, times: int = 1) -> None:
        """Commit a transaction with changes of `times` rows of each table."""
        with self._tidb.transaction() as txn:
            for name in self.names:
                for _ in range(times):
                    key = self._random.randrange(KEYS)
                    self._next += 1
                    if txn.get(name, key) is None:
                        txn.insert(name, {"id": key, "n": str(self._next)})
                    elif self._random.random() < 0.5:
                        txn.update(name, key, {"n": str(self._next)})
                    else:
                        txn.delete(name, key)

    def change(self) -> str:
        """Run a statement; return it."""
        statement = self._statement()
        if " exchange " in statement:  # TiDB would refuse rows that aren't in the partition's range
            self._tidb.execute(statement)
        else:
            self._tidb.execute(statement, self.write)
        return statement

    def _statement(self) -> str:
        random, names = self._random, self.names
        self._next += 1
        parted = random.choice([name for name in names if ".p" in name])
        plain = random.choice([name for name in names if ".m" in name])
        new = f"{random.choice(('shop', 'depot'))}.{plain.partition('.')[2][0]}{self._next}"
        match random.randrange(8):
            case 0 | 1:
                return f"rename table {plain} to {new}"
            case 2:
                others = [name for name in names if ".m" in name and name != plain]
                return f"rename table {plain} to {new}, {random.choice(others)} to {plain}"
            case 3:
                return f"alter table {parted} truncate partition {random.choice('ab')}"
            case 4:
                limit = random.randrange(1, KEYS)
                return f"alter table {parted} reorganize partition a, b into ({PARTITIONS % limit})"
            case 5 if not self._dropped and len(names) > 6:
                self._dropped.append(plain)
                return f"drop table {plain}"
            case 6 if self._dropped:
                dropped = self._dropped.pop()
                return f"flashback table {dropped} to m{self._next}"
            case 7:
                # The rows that change places are those of one range of keys.
                other = f"depot.m{self._next}"
                self._create(other)
                with self._tidb.transaction() as txn:
                    for key in random.sample(range(KEYS, 2 * KEYS), 5):
                        txn.insert(other, {"id": key, "n": "exchanged"})
                return f"alter table {parted} exchange partition b with table {other}"
        return f"truncate table {plain}"
