"""Damaged rows, keys, JSON and DDL jobs: each gives a value or a SourceError, in linear time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from tidemill.codec.tidb.column_type import Type
from tidemill.codec.tidb.job_entry import JOB_KEYS, read_job
from tidemill.codec.tidb.json import decode_json
from tidemill.codec.tidb.json_text import print_json
from tidemill.codec.tidb.key import decode_record_key
from tidemill.codec.tidb.meta import decode_meta_key
from tidemill.codec.tidb.row_decoder import RowDecoder
from tidemill.codec.tidb.table_info import decode_table_info
from tidemill.errors import SourceError
from tidemill.events import PUT
from tidemill.testing.damage import CALLS_A_BYTE, CALLS_AT_ALL, calls, damaged, damaged_json

from . import ddl_vectors
from .row_vectors import load, read

SEEDS = range(4)


def cost(work: Callable[[], Any], refused: type[Exception] = SourceError) -> int:
    """The calls that the work makes until it ends or is refused; it may raise nothing else."""

    def tried() -> None:
        with suppress(refused):
            work()

    return calls(tried)


def assert_linear(spent: int, data: bytes) -> None:
    assert spent <= CALLS_AT_ALL + CALLS_A_BYTE * len(data), data.hex()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("file", ["rows", "rows_checksum"])
def test_rows(file, seed):
    random = Random(seed)
    for vector in load(file):
        decoder = RowDecoder("vec", vector.info)
        for _ in range(4):
            key, value = vector.key, damaged(vector.value, random)
            if random.randrange(4) == 0:
                key, value = damaged(key, random), vector.value
            spent = cost(lambda pair=(key, value), decode=decoder.decode: decode([pair]))
            assert_linear(spent, key + value + b" " * 1000 * len(vector.info.columns))


@pytest.mark.parametrize("seed", SEEDS)
def test_json(seed):
    random = Random(seed)
    documents = []
    for vector in load("rows"):
        cells = vector.cells()
        documents += [cells[c.id] for c in vector.info.columns if c.type == Type.JSON and cells.get(c.id)]
    assert len(documents) > 20
    for document in documents * 10:
        broken = damaged(document, random)
        assert_linear(cost(lambda data=broken: print_json(decode_json(data)), ValueError), broken)


@pytest.mark.parametrize("seed", SEEDS)
def test_keys(seed):
    random = Random(seed)
    for line in read("keys"):
        for text in line.values():
            if isinstance(text, str) and len(text) % 2 == 0 and set(text) <= set("0123456789abcdef"):
                broken = damaged(bytes.fromhex(text), random)
                assert_linear(cost(lambda data=broken: decode_record_key(data), ValueError), broken)
                assert_linear(cost(lambda data=b"m" + broken: decode_meta_key(data), ValueError), broken)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", ddl_vectors.VERSIONS)
def test_entries_of_ddl_jobs(version, seed):
    random = Random(seed)
    count = 0
    for _, written in ddl_vectors.transactions(version):
        for change, *_ in written:
            if change.op == PUT and change.key.startswith(JOB_KEYS):
                field = random.choice(("key", "value"))
                broken = replace(change, **{field: damaged(getattr(change, field), random)})
                assert_linear(cost(lambda change=broken: read_job(change)), broken.key + broken.value)
                count += 1
    assert count > 200


@pytest.mark.parametrize("seed", SEEDS)
def test_descriptions_of_tables(seed):
    """A table that can be described has a decoder, or is refused."""
    random = Random(seed)
    text = ""
    for line in read("rows"):
        text = line.get("table_info_json") or text
        pair = bytes.fromhex(line["key_hex"]), bytes.fromhex(line["value_hex"])
        info = None
        with suppress(ValueError):
            info = decode_table_info(damaged_json(text, random))
        with suppress(SourceError):
            if info is not None:
                RowDecoder("vec", info).decode([pair])
