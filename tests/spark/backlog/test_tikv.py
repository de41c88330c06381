"""Two million changes in a TiKV through streams: each of them, in order, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ..cluster.standalone import Cluster
from .compared import Form, differences
from .streams import check_memory, streamed
from .tikv import TikvServer
from .workload import TABLES, Changes

pytestmark = pytest.mark.soak

SMALL = 500_000
LARGE = 2_000_000


class Backlog(NamedTuple):
    url: str
    changes: Changes
    starts: tuple[tuple[int, int], tuple[int, int]]
    """The ts at which the small and the large backlog begin, with the number of transactions before."""


@pytest.fixture(scope="module")
def backlog() -> Iterator[Backlog]:
    with TikvServer() as server:
        large = server.ts, 0
        server.run(LARGE - SMALL)
        small = server.ts, server.workload.transactions
        server.run(SMALL)
        yield Backlog(server.url, server.workload.net_changes(), (small, large))


@pytest.mark.parametrize(
    ("table", "partitions"),
    [
        pytest.param(None, 1, id="raw"),
        pytest.param(None, 2, id="raw by two tasks"),
        pytest.param(0, 1, id="typed"),
    ],
)
def test_a_backlog_on_one_machine(
    backlog: Backlog, tmp_path: Path, table: int | None, partitions: int
) -> None:
    found = []
    for place, (start, first) in enumerate(backlog.starts):
        given = options(backlog, start, table, partitions)
        found.append(streamed(tmp_path / str(place), given))
        print(found[-1])
        whole = partitions == 1
        wanted = backlog.changes.since(first)
        form = Form(table=table, numbered=whole, whole=whole)
        assert not differences(found[-1].rows, wanted, form)
    check_memory(*found)


def test_a_backlog_on_a_cluster(backlog: Backlog, cluster: Cluster, tmp_path: Path) -> None:
    found = []
    for place, (start, first) in enumerate(backlog.starts):
        given = options(backlog, start, None, 2)
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
        assert not differences(
            found[-1].rows, backlog.changes.since(first), Form(numbered=False, whole=False)
        )
    check_memory(*found)


def options(backlog: Backlog, start: int, table: int | None, partitions: int) -> dict[str, Any]:
    tables = {"tables": "shop.*"} if table is None else {"table": f"shop.{TABLES[table]}"}
    given = {"source": backlog.url, "startingTs": start, "partitions": partitions}
    return {**given, **tables, "sorterMemory": "16MiB"}
