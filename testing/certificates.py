"""Certificates of a day, made by the openssl command."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


class Authority:
    """A certificate authority in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        if shutil.which("openssl") is None:
            import pytest

            pytest.skip("SKIPPED WITHOUT THE openssl COMMAND: nothing of TLS is tested")
        directory.mkdir()
        self._directory = directory
        self.ca = directory / "ca.pem"
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", "/CN=authority", "-days", "1", "-out", self.ca, "-keyout", directory / "ca.key"),
            *("-addext", "keyUsage=critical,keyCertSign"),
        )

    def issue(self, name: str, address: str = "IP:127.0.0.1") -> tuple[Path, Path]:
        """The files of a new certificate for an address and of its key."""
        certificate, key = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-CA", self.ca, "-CAkey", self._directory / "ca.key", "-subj", f"/CN={name}", "-days", "1"),
            *("-addext", f"subjectAltName={address}", "-addext", "basicConstraints=critical,CA:false"),
            *("-out", certificate, "-keyout", key),
        )
        return certificate, key


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)
