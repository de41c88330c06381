"""Claim checks: a message that is too large is stored whole, and the one in its place refers to it."""

from __future__ import annotations

import io
import json
from base64 import b64decode
from collections.abc import Callable
from importlib import resources
from random import Random
from string import ascii_letters
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tidemill.errors import ConfigError
from tidemill.events import Column, RowChange, Table
from tidemill.sink.encoding.encoder import Message, NotEncodable
from tidemill.sink.encoding.encodings import ENCODINGS, make_encoder
from tidemill.sink.files.message_lines import message_lines

URI = "directory:///var/claims"
TEXT = Column("c", "varchar", length=9999)
KEYED = Table("s", "t", (Column("id", "int", nullable=False), TEXT), (0,))
LOOSE = Table("s", "loose", (Column("id", "int"), TEXT))
ENOUGH: dict[str, dict[str, Any]] = {
    "canal-json": {"enable-tidb-extension": True},
    "open-protocol": {},
    "simple": {},
    "simple avro": {"encoding-format": "avro"},
}
"""Options that claim checks need, by encoding."""
SIMPLE_SCHEMA = fastavro.parse_schema(
    json.loads(resources.files("tidemill.testing").joinpath("simple.avsc").read_text())
)


class Kept:
    """A store in memory."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def location(self, name: str) -> str:
        return f"s3://bucket/claims/{name}"

    def keep(self, objects: Any) -> None:
        self.objects.update(objects)


def noise(seed: int) -> str:
    """Return text that doesn't get smaller by lz4 or snappy."""
    return "".join(Random(seed).choices(ascii_letters, k=2000))


def changes(table: Table = KEYED, ts: int = 7, text: Callable[[int], str] = noise) -> list[RowChange]:
    """Return a small row, and large ones by each operation."""
    rows = [(number, text(number)) for number in range(4)]
    return [
        RowChange(ts, 1, table, "insert", None, (9, "small")),
        RowChange(ts, 1, table, "insert", None, rows[0]),
        RowChange(ts, 1, table, "update", rows[1], (1, "x")),
        RowChange(ts, 1, table, "delete", rows[2], None),
        RowChange(ts, 1, table, "insert", None, rows[3]),
    ]


def encode(
    encoding: str, rows: list[RowChange], kept: Kept, *, now: int = 5, **options: Any
) -> list[Message]:
    given = {"max-message-bytes": 700, "large-message-handle-option": "claim-check", **options}
    given |= {"claim-check-storage-uri": URI} | ENOUGH[encoding]
    if encoding == "open-protocol":
        given["max-batch-size"] = 1
    encoder = make_encoder(encoding.split()[0], given, lambda: now, claims=kept)
    return [message for message in encoder.rows(rows) if message.rows]


def encode_whole(encoding: str, rows: list[RowChange], **options: Any) -> list[Message]:
    batch = {"max-batch-size": 1} if encoding == "open-protocol" else {}
    encoder = make_encoder(encoding.split()[0], {**ENOUGH[encoding], **batch, **options}, lambda: 5)
    return [message for message in encoder.rows(rows) if message.rows]


def document(encoding: str, message: Message) -> dict[str, Any]:
    """Return a message's fields; of open-protocol, those of the row's key and value."""
    assert message.value is not None
    if encoding == "open-protocol":
        assert message.key is not None
        return {"key": json.loads(message.key[16:]), "value": json.loads(message.value[8:])}
    if encoding == "simple avro":
        found: dict[str, Any] = fastavro.schemaless_reader(
            io.BytesIO(message.value[1:]), SIMPLE_SCHEMA, return_record_name=True
        )["payload"][1]
        return found
    parsed: dict[str, Any] = json.loads(message.value)
    return parsed


def location(encoding: str, message: Message) -> str:
    found = document(encoding, message)
    match encoding:
        case "canal-json":
            return str(found["_tidb"].get("claimCheckLocation", ""))
        case "open-protocol":
            return str(found["key"].get("ccl", ""))
    return str(found.get("claimCheckLocation") or "")


def stored(content: bytes, *, raw: bool) -> Message:
    """Return the message in an object, as TiCDC's readers read it."""
    if raw:
        return Message(None, content)
    found = json.loads(content)
    assert found.keys() == {"key", "value"}
    return Message(found["key"] and b64decode(found["key"]), b64decode(found["value"]))


@pytest.mark.parametrize(
    ("encoding", "raw"),
    [(one, raw) for one in ENOUGH for raw in (False, True) if (one, raw) != ("open-protocol", True)],
)
def test_the_object_is_the_whole_message_and_the_message_refers_to_it(encoding: str, raw: bool) -> None:
    kept = Kept()
    found = encode(encoding, changes(), kept, **{"claim-check-raw-value": raw})
    whole = encode_whole(encoding, changes())
    assert found[0] == whole[0]
    names = [location(encoding, message).rpartition("/")[2] for message in found[1:]]
    assert [stored(kept.objects.pop(name), raw=raw) for name in names] == [
        Message(message.key, message.value) for message in whole[1:]
    ]
    assert not kept.objects
    assert all(len(message.value or b"") < 700 for message in found)


def test_messages_have_the_columns_of_the_key_and_the_location() -> None:
    kept = Kept()
    found = document("canal-json", encode("canal-json", changes()[1:2], kept)[0])
    (name,) = kept.objects
    assert (found["data"], found["sqlType"]) == ([{"id": "0"}], {"id": 4})
    assert found["_tidb"] == {"commitTs": 7, "claimCheckLocation": f"s3://bucket/claims/{name}"}

    kept = Kept()
    found = document("open-protocol", encode("open-protocol", changes()[1:2], kept)[0])
    (name,) = kept.objects
    assert found["key"] == {
        "ts": 7, "scm": "s", "tbl": "t", "t": 1, "ohk": False, "ccl": f"s3://bucket/claims/{name}"
    }  # fmt: skip
    assert found["value"]["u"].keys() == {"id"}

    for encoding in ("simple", "simple avro"):
        kept = Kept()
        found = document(encoding, encode(encoding, changes()[1:2], kept)[0])
        (name,) = kept.objects
        assert (found["claimCheckLocation"], found["handleKeyOnly"]) == (f"s3://bucket/claims/{name}", True)
        assert found["data"].keys() == {"id"}


@pytest.mark.parametrize("encoding", ENOUGH)
def test_a_replay_has_the_same_names_and_other_rows_have_others(encoding: str) -> None:
    kept, again, later, packed = Kept(), Kept(), Kept(), Kept()
    encode(encoding, changes(), kept)
    for change in changes():  # in other batches, at another time
        encode(encoding, [change], again, now=999)
    encode(encoding, changes(ts=8), later)
    encode(encoding, changes(), packed, **{"large-message-handle-compression": "lz4"})
    assert len(kept.objects) == 4
    assert kept.objects.keys() == again.objects.keys()
    assert not kept.objects.keys() & later.objects.keys()
    assert not kept.objects.keys() & packed.objects.keys()
    assert max(kept.objects) < min(later.objects)  # names are in the order of commits


@pytest.mark.parametrize("encoding", ENOUGH)
def test_a_table_without_a_key_is_stored_too(encoding: str) -> None:
    kept = Kept()
    found = encode(encoding, changes(LOOSE), kept)
    assert len(kept.objects) == 4
    assert all(location(encoding, message) for message in found[1:])


@pytest.mark.parametrize("encoding", ENOUGH)
@pytest.mark.parametrize("codec", ["lz4", "snappy"])
def test_what_fits_when_it_is_compressed_isnt_stored(encoding: str, codec: str) -> None:
    kept, rows = Kept(), changes(text=lambda number: chr(97 + number) * 2000)
    options = {"large-message-handle-compression": codec}
    assert encode(encoding, rows, kept, **options) == encode_whole(encoding, rows, **options)
    assert not kept.objects


def test_an_object_is_compressed_as_its_message() -> None:
    kept = Kept()
    options = {"large-message-handle-compression": "snappy"}
    [found] = encode("simple", changes()[1:2], kept, **options)
    ((name, content),) = kept.objects.items()
    assert [stored(content, raw=False)] == encode_whole("simple", changes()[1:2], **options)
    assert found.value is not None
    size = int(found.value[0] & 127) | found.value[1] << 7
    reference = json.loads(pa.Codec("snappy").decompress(found.value, size, asbytes=True))
    assert reference["claimCheckLocation"] == f"s3://bucket/claims/{name}"


@pytest.mark.parametrize("encoding", ENOUGH)
def test_nothing_is_stored_if_the_key_is_too_large(encoding: str) -> None:
    kept = Kept()
    table = Table("s", "t", (TEXT,), (0,))
    rows = [RowChange(7, 1, table, "insert", None, (text * 2000,)) for text in "ab"]
    with pytest.raises(NotEncodable, match="the key of a row takes, with the location of the whole, 2"):
        encode(encoding, rows, kept)
    assert not kept.objects


# --- options


@pytest.mark.parametrize("encoding", [name for name in ENCODINGS if name not in ENOUGH])
def test_other_encodings_refuse_claim_checks(encoding: str) -> None:
    options = {"large-message-handle-option": "claim-check", "claim-check-storage-uri": URI}
    with pytest.raises(ConfigError, match=rf"handle-option: no such option of {encoding}"):
        make_encoder(encoding, options, int, claims=Kept())


@pytest.mark.parametrize(
    ("encoding", "options", "words"),
    [
        ("simple", {"claim-check-storage-uri": ""}, "needs claim-check-storage-uri"),
        ("simple", {"large-message-handle-option": "none"}, "claim-check-storage-uri needs large-message"),
        ("simple", {"large-message-handle-option": "claims"}, "'none', 'handle-key-only', 'claim-check'"),
        ("open-protocol", {"max-batch-size": 0}, "encoding.max-batch-size = 0: expected `int` >= 1"),
        ("canal-json", {"max-message-bytes": 99}, "encoding.max-message-bytes = 99: at least 100"),
        ("canal-json", {}, "needs enable-tidb-extension = true"),
        ("open-protocol", {"claim-check-raw-value": True}, "can't be read without its key"),
    ],
)
def test_options_that_are_wrong_are_named(encoding: str, options: dict[str, Any], words: str) -> None:
    given = {"large-message-handle-option": "claim-check", "claim-check-storage-uri": URI, **options}
    with pytest.raises(ConfigError, match=words):
        make_encoder(encoding, given, int, claims=Kept())


def test_a_file_refuses_claim_checks() -> None:
    options = {"large-message-handle-option": "claim-check", "claim-check-storage-uri": URI}
    with pytest.raises(ConfigError, match="for Kafka only: a file takes messages of any length"):
        message_lines("simple", options, int)
