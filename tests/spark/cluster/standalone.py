"""Spark's own standalone cluster on loopback: a master, and a worker on each of two "hosts".

A host is an address of its own (127.0.0.2, 127.0.0.3) and a session of processes, which end together when it
does: the worker, its executors and their Python processes.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from shutil import which
from typing import Any, Final, Self, TypeVar

import pyspark

from tidemill.spark.launch.java import java_home
from tidemill.testing.progress import eventually

SPARK_HOME: Final = Path(pyspark.__file__).parent
PATIENCE_SECONDS: Final = 180
EXECUTOR: Final = "CoarseGrainedExecutorBackend"
DEFAULTS: Final = """\
spark.driver.host 127.0.0.1
spark.driver.memory 600m
spark.executor.memory 512m
spark.executor.cores 1
spark.scheduler.maxRegisteredResourcesWaitingTime 180s
spark.ui.enabled false
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.sql.execution.arrow.maxRecordsPerBatch 20
"""
"""As a cluster's administrator would write them into spark-defaults.conf."""

_LISTENS: Final = r"Starting Spark master at (spark://127\.0\.0\.1:\d+)"
_REGISTERED: Final = "Successfully registered with master"

T = TypeVar("T")


class Session:
    """A process, and whatever it starts."""

    def __init__(self, command: Sequence[str | Path], log: Path, **options: Any) -> None:
        self.log_path = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, **options
            )

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def until(self, condition: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
        """Wait until `condition` is true and return its value; fails if the process ends before."""

        def look() -> T:
            assert self.process.poll() is None, self.log()
            return condition()

        try:
            found: T = eventually(look, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log()}") from None
        return found

    def pids(self, program: str = "") -> list[int]:
        """Return the ids of the session's processes whose command line has `program`."""
        return [pid for pid in _session(self.process.pid) if program in _command_line(pid)]

    def signal(self, number: int, program: str = "") -> None:
        for pid in self.pids(program):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """All of them, as if their host had lost its power."""
        while self.process.poll() is None or self.pids():
            self.signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()


class Daemon(Session):
    """A master or a worker."""

    def __init__(self, kind: str, directory: Path, address: str, *arguments: str, path: str = "") -> None:
        """`path` comes before the PATH of this process."""
        directory.mkdir(parents=True)
        home = java_home()
        java = str(home / "bin" / "java") if home else which("java")
        assert java is not None
        command = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command += ["-cp", f"{SPARK_HOME / 'jars'}/*", f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
        command += ["--host", address, "--port", "0", "--webui-port", "0", *arguments]
        environment = clean_environment() | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_SCALA_VERSION": "2.13",  # else the launcher looks for a build of Spark
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_DIRS": str(directory / "local"),
            "PATH": f"{path}{os.pathsep}{os.environ['PATH']}" if path else os.environ["PATH"],
            **({"JAVA_HOME": str(home)} if home else {}),
        }
        super().__init__(command, directory / f"{kind.lower()}.log", env=environment)

    def says(self, pattern: str) -> re.Match[str]:
        found = self.until(lambda: re.search(pattern, self.log()))
        assert found is not None
        return found

    def executors(self) -> list[int]:
        return self.pids(EXECUTOR)


class Cluster:
    """A master and two workers of one core each, `hosts`."""

    def __init__(self, directory: Path, hosts: int = 2) -> None:
        self.directory = directory
        self._count = hosts
        self.programs = directory / "programs"
        """The first folder of the hosts' PATH."""
        self.hosts: list[Daemon] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            master = self._stack.enter_context(Daemon("Master", self.directory / "master", "127.0.0.1"))
            self.url = master.says(_LISTENS)[1]
            self.hosts = [self._worker(number) for number in range(self._count)]
            for host in self.hosts:
                host.says(_REGISTERED)
            self._stack = self._stack.pop_all()
        return self

    def start(self, number: int) -> None:
        """A host that was killed."""
        self.hosts[number] = self._worker(number)
        self.hosts[number].says(_REGISTERED)

    def _worker(self, number: int) -> Daemon:
        started = len([*self.directory.glob(f"host{number}*")])
        directory = self.directory / f"host{number}-{started}"
        more = ["--cores", "1", "--memory", "1g", "--work-dir", str(directory / "work"), self.url]
        host = Daemon("Worker", directory, f"127.0.0.{number + 2}", *more, path=str(self.programs))
        return self._stack.enter_context(host)

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def environment(self, python: Path | str = sys.executable) -> dict[str, str]:
        """Return a driver's environment, in which Spark's workers run `python`."""
        conf = self.directory / "conf"
        conf.mkdir(exist_ok=True)
        common = Path(__file__).parents[1] / "conf" / "spark-defaults.conf"
        (conf / common.name).write_text(common.read_text() + DEFAULTS)
        return clean_environment() | {
            "SPARK_CONF_DIR": str(conf),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.directory / "driver"),
            "PYSPARK_PYTHON": str(python),
        }


def clean_environment() -> dict[str, str]:
    """Without what a session of Spark in this process has left."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SPARK_", "PYSPARK_", "_PYSPARK", "PYTHONPATH"))
    }


def _session(leader: int) -> Iterator[int]:
    """The living processes of a session."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            state, _, _, session, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(session) == leader and state != "Z":
                yield int(entry.name)


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
