"""An S3-compatible store in a process of its own, for measurements: its work isn't the program's.

Run as a program, it prints its address and serves until its standard input ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Self

from .s3 import LOGIN, S3Server, S3Store


class S3Process(S3Server):
    """The store of a child process."""

    def __enter__(self) -> Self:
        os.environ.update(LOGIN)
        command = [sys.executable, "-m", __spec__.name]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.endpoint = self._process.stdout.readline().strip()
        if not self.endpoint:
            raise RuntimeError(f"{' '.join(command)} ended before it served")
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()  # which closes its input


if __name__ == "__main__":
    with S3Store() as store:
        sys.stdout.write(f"{store.endpoint}\n")
        sys.stdout.flush()
        sys.stdin.read()
