"""Spark's errors about a misconfigured cluster, as one sentence."""

from __future__ import annotations

import sys

import pyspark
import pytest

from tidemill.errors import ConfigError, Fatal, Retryable
from tidemill.spark.run.errors import explain

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
ADVICE = f"set PYSPARK_PYTHON to a Python {HERE} that every worker has there, with tidemill installed"
TOO_OLD = """\
An error occurred while calling o87.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times
Error from python worker:
  Traceback (most recent call last):
    File "/usr/lib/python3.8/runpy.py", line 185, in _run_module_as_main
  AttributeError: module 'importlib.resources' has no attribute 'files'
PYTHONPATH was:
  /opt/spark/python/lib/pyspark.zip
org.apache.spark.SparkException: EOFException occurred while reading the port number
"""


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in driver: …",
            f"the workers have another Python than the driver: 3.10, and not {HERE}: {ADVICE}",
        ),
        (
            'x\n: failed 4 times: java.io.IOException: Cannot run program "a/b": error=2, No such file\nmore',
            f"a worker can't run a/b: error=2, No such file: {ADVICE}",
        ),
        (
            "Traceback\nModuleNotFoundError: No module named 'pyarrow'",
            "the workers' Python has no pyarrow: pip install 'tidemill[spark]' on each of them",
        ),
        (
            TOO_OLD.replace(
                "AttributeError: module", "ModuleNotFoundError: No module named 'importlib.resources':"
            ),
            "the workers' Python doesn't start (ModuleNotFoundError: No module named 'importlib.resources': "
            f"'importlib.resources' has no attribute 'files'): {ADVICE}",
        ),
        (
            TOO_OLD,
            "the workers' Python doesn't start (AttributeError: module 'importlib.resources' has no "
            f"attribute 'files'): {ADVICE}",
        ),
        (
            "x\n: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nThis",
            f"the master took no application, or gave it up: it must be of Spark {pyspark.__version__}; "
            "and where executors end one after the other, each says why in work/app-…/…/stderr on its "
            "worker, for instance that it can't reach the driver (spark.driver.host)",
        ),
    ],
)
def test_a_cluster_that_is_not_as_it_should_be(said: str, sentence: str) -> None:
    found = explain(Exception(said), "sink a")
    assert isinstance(found, ConfigError)
    assert str(found) == sentence


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("SparkException: Python worker failed to connect back.", Retryable),
        ("java.io.OptionalDataException", Retryable),
        ("java.lang.OutOfMemoryError", Fatal),
    ],
)
def test_what_passes_is_tried_again(why: str, kind: type[Exception]) -> None:
    found = explain(Exception(f"x\n: org.apache.spark.SparkException: Job aborted: {why}\nmore"), "sink a")
    assert type(found) is kind
    assert str(found) == f"sink a: org.apache.spark.SparkException: Job aborted: {why}"
