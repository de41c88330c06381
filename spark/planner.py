"""A check that a task runs the same program as the driver that planned it."""

from __future__ import annotations

import sys

from .. import __version__
from ..errors import ConfigError


class Planner:
    """Created by the driver and sent to its tasks: their rows must not depend on the worker that runs
    them."""

    def __init__(self) -> None:
        self._versions = _versions()

    def check(self) -> None:
        """Raise ConfigError unless this process runs the same program."""
        if self._versions != _versions():
            raise ConfigError(
                f"the driver runs {self._versions}, this worker {_versions()}: install the same on both"
            )


def _versions() -> str:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"tidemill {__version__} on Python {python}"
