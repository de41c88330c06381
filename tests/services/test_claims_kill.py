"""kill -9 of a feed into Kafka between a stored message and its reference: each row is there once."""

from __future__ import annotations

import json
from itertools import count

import pytest

from tidemill.testing.claim_reader import whole
from tidemill.testing.feeds import CopiedTable
from tidemill.testing.kafka import messages
from tidemill.testing.progress import eventually

KAFKA = """
format = "canal-json"
partition = "key"

[sink.encoding]
enable-tidb-extension = true
max-message-bytes = 1000
large-message-handle-option = "claim-check"
claim-check-storage-uri = "{uri}"
"""

POINTS = ["claims.kept:1", "claims.kept:3"]


@pytest.fixture
def place(mariadb, database, tmp_path):
    place = CopiedTable(tmp_path, mariadb, database)
    place.execute(f"ALTER TABLE {database}.item MODIFY name MEDIUMTEXT")
    return place


def rebuilt(found):
    """Return the rows by their keys; fails if a change has no row to change."""
    rows = {}
    for message in found:
        new = message["data"][0]
        if message["type"] == "INSERT":
            assert new["id"] not in rows
        else:
            assert rows.pop(message["old"][0]["id"]) == message["old"][0]["name"]
        rows[new["id"]] = new["name"]
    return sorted((int(number), name) for number, name in rows.items())


@pytest.mark.parametrize("kind", ["directory", pytest.param("bucket", marks=pytest.mark.soak)])
def test_a_feed_that_dies_after_storing_a_message_writes_each_row_once(
    place, kafka_server, s3_server, bucket, kind
):
    uri = f"directory://{place.directory}/claims"
    if kind == "bucket":
        uri = f"s3://{bucket}/claims?endpoint={s3_server.endpoint}"
    topic = f"claims_{place.schema}"
    place.configure(sinks=[kafka_server.url(topic)])
    place.config.write_text(place.config.read_text() + KAFKA.format(uri=uri))
    ids = count(10)

    def change():
        number, text = next(ids), "x" * 5000
        place.execute(
            f"INSERT INTO {place.schema}.item VALUES ({number}, '{text}{number}')",
            f"UPDATE {place.schema}.item SET name = '{number}{text}' WHERE id = 1",
            f"UPDATE {place.schema}.item SET name = 'small {number}' WHERE id = 2",
        )

    change()
    for point in POINTS:
        with place.start(failpoint=point) as running:

            def ended(running=running):
                change()
                return running.process.poll() is not None

            eventually(ended, sign=lambda: next(ids))
            running.dies()
    assert place.run().status == 0

    objects = s3_server.objects(f"{bucket}/claims")
    if kind == "directory":
        objects = {path.name: path.read_bytes() for path in (place.directory / "claims").iterdir()}
    found = [json.loads(message.value()) for message in messages(kafka_server.brokers, topic)]
    rows = [message for message in found if message["data"]]
    assert sum("claimCheckLocation" in message["_tidb"] for message in rows) >= 2
    assert rebuilt([whole(message, objects.__getitem__) for message in rows]) == sorted(place.present())
