"""Tables that a consumer in Java rebuilds from topics: examples/java, with the jars of Kafka and Avro."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from . import kafka

HOME: Final = Path(os.environ.get("TIDEMILL_AVRO_JAVA") or Path(__file__).parents[1] / "build/avro-java")
"""Where the jars of Avro are."""
PROGRAM: Final = Path(__file__).parents[1] / "examples/java/RebuildTables.java"
_JAVA: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SECONDS: Final = 120


def missing() -> str:
    """Return the reason why it can't be run on this machine; empty if it can."""
    if not HOME.is_dir():
        return f"{HOME} doesn't hold Avro for Java: run tests/services/avro-java, which says why it can't"
    return kafka.missing() or (
        "" if shutil.which("javac") else "there is no javac: apt-get install default-jdk-headless"
    )


class JavaConsumer:
    """The program, compiled into a directory while other things go on."""

    def __init__(self, directory: Path) -> None:
        self._jars: Final = os.pathsep.join([str(directory), f"{kafka.HOME}/*", f"{HOME}/*"])
        command = ["javac", *(f"-J{option}" for option in _JAVA), "-proc:none"]
        self._compiler: Final = subprocess.Popen(
            [*command, "-cp", self._jars, "-d", directory, PROGRAM],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def rebuilt(self, brokers: str, registry: str, *topics: str) -> dict[str, list[dict[str, object]]]:
        """Return the rows of each topic's table; topics are named as "canal-json:TOPIC" or "avro:TOPIC"."""
        said, _ = self._compiler.communicate(timeout=_SECONDS)
        if self._compiler.returncode:
            raise AssertionError(said.decode(errors="replace"))
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        command = ["java", *_JAVA, logging, "-cp", self._jars, PROGRAM.stem, brokers, registry, *topics]
        done = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS)
        if done.returncode:
            raise AssertionError(done.stderr.decode(errors="replace"))
        tables: dict[str, list[dict[str, object]]] = {topic: [] for topic in topics}
        for line in done.stdout.decode().splitlines():
            row = json.loads(line)
            tables[row["topic"]].append(row["row"])
        return tables

    def close(self) -> None:
        """End the compiler, if it still runs."""
        with self._compiler:
            self._compiler.kill()
