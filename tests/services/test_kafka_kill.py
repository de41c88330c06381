"""kill -9 of a feed into Kafka at every named point, under load: nothing lost, exactly once nothing twice."""

from __future__ import annotations

from itertools import count, cycle, islice

import pytest

from tidemill.failpoint import POINTS as ALL_POINTS
from tidemill.testing import shop
from tidemill.testing.child import CLI, Child
from tidemill.testing.following import following
from tidemill.testing.kafka_copy import compare_topics
from tidemill.testing.shop_copies import until_caught_up

FEED = """\
name = "{prefix}"
data_dir = "{directory}/state"

[source]
url = "{url}"
tables = ["shop.*"]

[[sink]]
name = "kafka"
url = "{kafka}"
delivery = "{delivery}"
partition = "key"
partitions = 2
headers = {{ {headers} }}
"""

POINTS = [point for point in ALL_POINTS if point.startswith("kafka.")]
_numbers = count(1)


def killed_often(tmp_path, server, broker, delivery, times):
    """Kill the feed at all points in turn, as often as `times`, and compare what a consumer rebuilds."""
    prefix, config, log = f"kill{next(_numbers)}", tmp_path / "feed.toml", tmp_path / "feed.log"
    config.write_text(
        FEED.format(
            prefix=prefix,
            directory=tmp_path,
            url=server.url(),
            kafka=broker.url(f"{prefix}_{{table}}"),
            delivery=delivery,
            headers='at = "{commit_ts}/{row}"' if delivery == "at least once" else "",
        )
    )
    with server.connect(autocommit=False) as connection:
        shop.create(connection)
        shop.fill(connection, 300)
    if delivery == "at least once":  # a chunk of a snapshot that comes again has another commit ts
        with following(config) as process:
            until_caught_up(tmp_path / "state", server, process)
    writers = shop.Writers(lambda: server.connect(autocommit=False), clients=2, pause_seconds=0.01).start()
    try:
        for number, point in enumerate(islice(cycle(POINTS), times)):
            with Child(
                [*CLI, "run", config], log, failpoint=f"{point}:{1 + number // len(POINTS) % 5}"
            ) as child:
                child.dies()
    finally:
        writers.stop()
    with following(config) as process:
        until_caught_up(tmp_path / "state", server, process)
    result = compare_topics(broker.brokers, server, prefix)
    assert result.identical, str(result)


@pytest.mark.parametrize("delivery", ["exactly once", pytest.param("at least once", marks=pytest.mark.soak)])
def test_killed_at_every_point_nothing_is_lost_or_twice(tmp_path, private_mariadb, kafka_server, delivery):
    killed_often(tmp_path, private_mariadb.start(), kafka_server, delivery, len(POINTS))


@pytest.mark.soak
@pytest.mark.parametrize("delivery", ["exactly once", "at least once"])
def test_killed_very_often(tmp_path, private_mariadb, kafka_server, delivery):
    killed_often(tmp_path, private_mariadb.start(), kafka_server, delivery, 102)
