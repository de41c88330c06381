"""The outbox pattern: what a program inserts into `shop.outbox` goes to Kafka, if its transaction commits.

    CREATE TABLE shop.outbox (
        id BIGINT AUTO_INCREMENT PRIMARY KEY, topic VARCHAR(100), about VARCHAR(100), payload TEXT
    )

python examples/outbox.py mysql://user:password@host:port broker:9092
"""

import sys

from confluent_kafka import KafkaException, Producer

import tidemill


class Outbox:
    """Sends each inserted row once its transaction is committed, in the order of the commits.

    After a crash the last transactions are sent again: a consumer leaves out ids that it knows, from the
    header `id`. Rows may be deleted at any time after their commit.
    """

    def __init__(self, brokers: str) -> None:
        self._producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True})
        self._errors: list[object] = []

    def send(self, txn: tidemill.Transaction) -> None:
        """Return when the brokers have all messages. Raises KafkaException."""
        for row in txn.rows:
            message = row.after_dict() if row.op == "insert" else None
            if message is not None:
                self._producer.produce(
                    message["topic"],
                    message["payload"],
                    message["about"],
                    headers={"id": str(message["id"])},
                    on_delivery=self._delivered,
                )
        self._producer.flush()
        if self._errors:
            raise KafkaException(self._errors[0])

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._errors.append(error)


def main(source: str, brokers: str, data_dir: str = "state", until: str | None = None) -> None:
    tidemill.follow(Outbox(brokers).send, source, ["shop.outbox"], data_dir=data_dir, until=until)


if __name__ == "__main__":
    main(*sys.argv[1:])
