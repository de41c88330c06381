"""A private REST catalog on loopback: Iceberg's own, in front of a SQLite file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from .private_server import PrivateServer

ROOT: Final = Path(__file__).parents[1]
HOME: Final = Path(os.environ.get("TIDEMILL_ICEBERG_REST") or ROOT / "build/iceberg-rest")
"""Where the jars are."""
PROGRAM: Final = ROOT / "tests/services/IcebergRest.java"


def missing() -> str:
    """Return the reason why it can't be run on this machine; empty if it can."""
    if not HOME.is_dir():
        return f"{HOME} isn't there: run tests/services/iceberg-rest, which says why it can't"
    return "" if shutil.which("javac") else "there is no javac: apt-get install default-jdk-headless"


class IcebergRest(PrivateServer):
    """Keeps its tables over `kill` and `restart`."""

    def install_to(self, data_directory: Path) -> None:
        data_directory.mkdir(parents=True)

    def command(self) -> list[str]:
        flags = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]
        return ["java", *flags, "-cp", f"{HOME}/*", str(PROGRAM), str(self.port), str(self.data_directory)]

    def silence(self) -> str:
        try:
            with urlopen(f"http://{self.host}:{self.port}/v1/config", timeout=5):
                return ""
        except URLError as error:
            return str(error.reason)
