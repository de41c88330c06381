"""Whether a task runs the program that planned it."""

from __future__ import annotations

import sys
from importlib.metadata import version

from ..errors import ConfigError


class Planner:
    """Made by the driver, sent to its tasks: their rows must not depend on which worker they run on."""

    def __init__(self) -> None:
        self._versions = _versions()

    def check(self) -> None:
        """Raise ConfigError unless this is the same program."""
        if self._versions != _versions():
            raise ConfigError(
                f"the driver runs {self._versions}, this worker {_versions()}: install the same on both"
            )


def _versions() -> str:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"tidemill {version('tidemill')} on Python {python}"
