"""Real servers behind a bad network, by seeds: each change arrives once, in order, and the copy is equal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.testing.private_server import PrivateServer

from .bad_network import BadNetwork, Outcome
from .bad_network_targets import InKafka, InMysql, InPostgres, InS3, Target

TARGETS = (
    "mariadb 1", "mariadb 4", "mysql 1", "mysql 4", "postgres 1", "postgres 4",
    "kafka exactly once", "kafka at least once", "s3",
)  # fmt: skip
"""Kinds of targets, with the number of workers or the delivery."""
SOURCES = ("mariadb", "mysql")
SOAK_FAULTS = 30
"""On each side of a feed in the soak: there are 1,080."""


@pytest.fixture
def source(request: pytest.FixtureRequest) -> tuple[PrivateServer, str]:
    """A server, and a schema on it."""
    if request.param == "mysql":
        return request.getfixturevalue("mysql97"), request.getfixturevalue("mysql_database")
    return request.getfixturevalue("mariadb"), request.getfixturevalue("database")


@pytest.fixture
def target(request: pytest.FixtureRequest, source: tuple[PrivateServer, str]) -> Target:
    (_, schema), (name, _, option) = source, request.param.partition(" ")
    match name:
        case "mariadb":
            return InMysql(request.getfixturevalue("mariadb"), schema, int(option))
        case "mysql":
            return InMysql(request.getfixturevalue("mysql97"), schema, int(option))
        case "postgres":
            return InPostgres(request.getfixturevalue("postgresql"), schema, int(option))
        case "kafka":
            return InKafka(request.getfixturevalue("kafka_server"), schema, option)
    return InS3(request.getfixturevalue("s3_server"), request.getfixturevalue("bucket"))


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Iterator[dict[str, list[Outcome]]]:
    """Outcomes by target; their sums are printed at the end."""
    found: dict[str, list[Outcome]] = defaultdict(list)
    yield found
    if not found:
        return
    lines = [f"{target}: {summed(some)}" for target, some in sorted(found.items())]
    lines.append(f"all: {summed([one for some in found.values() for one in some])}")
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("", *lines, sep="\n")


def summed(outcomes: list[Outcome]) -> str:
    faults: Counter[str] = sum((one.faults for one in outcomes), Counter())
    kinds = ", ".join(f"{kind} {times}" for kind, times in sorted(faults.items()))
    at_commits = sum(one.at_commits for one in outcomes)
    kills, changes = sum(one.kills for one in outcomes), sum(one.changes for one in outcomes)
    return (
        f"{faults.total()} faults ({kinds}; {at_commits} at commits), {kills} kills, "
        f"{changes:,} changes, each once"
    )


@pytest.mark.parametrize(
    ("source", "target", "seed"),
    [
        ("mariadb", "mysql 4", 1),
        ("mysql", "mariadb 1", 2),
        ("mysql", "postgres 4", 3),
        ("mariadb", "kafka exactly once", 4),
        ("mysql", "s3", 5),
    ],
    indirect=["source", "target"],
)
def test_each_change_arrives_once(
    source: tuple[PrivateServer, str], target: Target, seed: int, tmp_path: Path
) -> None:
    outcome = BadNetwork(tmp_path, *source, target, seed).survive(4, longest_seconds=1.5)
    assert outcome.changes > 100


@pytest.mark.soak
@pytest.mark.parametrize("source", SOURCES, indirect=True)
@pytest.mark.parametrize("target", TARGETS, indirect=True)
def test_each_change_arrives_once_after_a_thousand_faults(
    request: pytest.FixtureRequest,
    source: tuple[PrivateServer, str],
    target: Target,
    outcomes: dict[str, list[Outcome]],
    tmp_path: Path,
) -> None:
    seed = request.config.getoption("--seed") or 1
    name = request.node.callspec.id
    outcome = BadNetwork(tmp_path, *source, target, f"{name}/{seed}").survive(
        SOAK_FAULTS, longest_seconds=3.0
    )
    outcomes[name.rpartition("-")[0]].append(outcome)
    assert outcome.faults.total() == 2 * SOAK_FAULTS
