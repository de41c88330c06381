"""Modules that processes of Spark import: each helper of a query is a new process, which pays for them."""

from __future__ import annotations

import json
import subprocess
import sys

from tidemill.testing.mariadb_client import Client

READ = """
import json, sys

def has(name):
    print(json.dumps([name, sorted(sys.modules)]), flush=True)

from pyspark.sql.worker import create_data_source
from tidemill.spark.data_source import PushingSource
from pyspark.sql.datasource import EqualTo

options = json.loads(sys.argv[1])
source = PushingSource({**options, "filterPushdown": "true"})
schema = source.schema()
has("schema")
reader = source.reader(schema)
list(reader.pushFilters([EqualTo(("after", "id"), 5)]))
parts = reader.partitions()
has("plan")
print(json.dumps(["rows", sum(batch.num_rows for part in parts for batch in reader.read(part))]))
has("read")
stream = PushingSource(options).streamReader(schema)
start = stream.initialOffset()
stream.latestOffset(start, stream.getDefaultReadLimit())
stream.stop()
has("stream")
"""
OTHER_SOURCES = {"grpc", "etcd3", "google.protobuf", "tidemill.puller.tikv.client"}
ENGINE = {"rocksdict", "pykka", "tidemill.engine", "tidemill.mounter.mysql", "tidemill.sorter"}
CAPTURES = {"pyarrow.flight"}
TIDB_ROWS = "tidemill.codec.tidb."


def test_a_read_of_mariadb_imports_no_engine_and_no_other_source(sql: Client) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY, note VARCHAR(40))")
    sql("INSERT INTO item SELECT seq, 'x' FROM seq_1_to_9")
    options = {"source": sql.server.url(), "table": f"{sql.database}.item"}
    done = subprocess.run(
        [sys.executable, "-c", READ, json.dumps(options)], capture_output=True, text=True, check=True
    )
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    assert found.pop("rows") == 1
    assert list(found) == ["schema", "plan", "read", "stream"]
    for step, modules in found.items():
        unneeded = (OTHER_SOURCES | ENGINE | CAPTURES | {"pandas"}).intersection(modules)
        unneeded |= {name for name in modules if name.startswith(TIDB_ROWS)}
        assert unneeded == set(), step
    assert "pyarrow" not in found["schema"]
    assert "pyarrow" in found["read"]
