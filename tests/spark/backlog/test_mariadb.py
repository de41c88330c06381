"""Two million changes in a MariaDB's binlog through streams: each of them, in order, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tidemill.testing.mariadb import MariaDb

from ..cluster.standalone import Cluster
from . import on_mariadb
from .compared import Form, differences
from .streams import check_memory, streamed
from .workload import TABLES, Changes, Workload

pytestmark = pytest.mark.soak

SMALL = 500_000
LARGE = 2_000_000
SCHEMA = "shop"


class Backlog(NamedTuple):
    url: str
    changes: Changes
    starts: tuple[tuple[str, int], tuple[str, int]]
    """Positions at which the small and the large backlog begin, with the number of transactions before."""

    def options(self, start: str) -> dict[str, Any]:
        return {"source": self.url, "startingPosition": start}


@pytest.fixture(scope="module")
def backlog(tmp_path_factory: pytest.TempPathFactory, mariadb_template: Path) -> Iterator[Backlog]:
    directory = tmp_path_factory.mktemp("backlog") / "mariadb"
    options = ("--innodb-buffer-pool-size=512M", "--innodb-log-file-size=256M")
    with MariaDb(directory, *options, template=mariadb_template) as server:
        on_mariadb.create(server, SCHEMA)
        workload = Workload()
        large = on_mariadb.position(server), 0
        on_mariadb.write(server, SCHEMA, workload.transactions_of(LARGE - SMALL))
        small = on_mariadb.position(server), workload.transactions
        on_mariadb.write(server, SCHEMA, workload.transactions_of(SMALL))
        on_mariadb.check(server, SCHEMA, workload)
        yield Backlog(server.url(), workload.changes(), (small, large))


@pytest.mark.parametrize(
    ("table", "options"),
    [
        pytest.param(None, {"maxBytesPerBatch": "4GiB"}, id="raw in one batch"),
        pytest.param(None, {"maxRowsPerBatch": 100_000}, id="raw"),
        pytest.param(None, {"partitions": 2, "maxBytesPerBatch": "8MiB"}, id="raw by two tasks"),
        pytest.param(1, {"maxBytesPerBatch": "4GiB"}, id="typed in one batch"),
        pytest.param(0, {"maxRowsPerBatch": 50_000}, id="typed"),
    ],
)
def test_a_backlog_on_one_machine(
    backlog: Backlog, tmp_path: Path, table: int | None, options: dict[str, Any]
) -> None:
    found = []
    for place, (start, first) in enumerate(backlog.starts):
        tables = {"tables": f"{SCHEMA}.*"} if table is None else {"table": f"{SCHEMA}.{TABLES[table]}"}
        given = {**backlog.options(start), **tables, **options}
        found.append(streamed(tmp_path / str(place), given))
        print(found[-1])
        wanted = backlog.changes.since(first)
        form = Form(table=table, whole=options.get("partitions", 1) == 1)
        assert not differences(found[-1].rows, wanted, form)
    check_memory(*found)


def test_a_backlog_on_a_cluster(backlog: Backlog, cluster: Cluster, tmp_path: Path) -> None:
    found = []
    for place, (start, first) in enumerate(backlog.starts):
        given = {
            **backlog.options(start),
            "tables": f"{SCHEMA}.*",
            "partitions": 2,
            "maxBytesPerBatch": "32MiB",
        }
        found.append(
            streamed(
                tmp_path / str(place),
                given,
                master=cluster.url,
                environment=cluster.environment(),
                hosts=[host.process.pid for host in cluster.hosts],
            )
        )
        print(found[-1])
        wanted = backlog.changes.since(first)
        assert not differences(found[-1].rows, wanted, Form(whole=False))
    check_memory(*found)
