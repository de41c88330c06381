"""gRPC's own lines about connections that end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = "import os, sys, tidemill.puller.grpc as _; print(os.environ['GRPC_VERBOSITY'], 'grpc' in sys.modules)"


@pytest.mark.parametrize(("given", "level"), [({}, "ERROR"), ({"GRPC_VERBOSITY": "INFO"}, "INFO")])
def test_they_are_off_before_grpc_begins_unless_a_program_wants_them(given, level) -> None:
    others = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    done = subprocess.run([sys.executable, "-c", CODE], env=others | given, capture_output=True, check=True)
    assert done.stdout.decode().split() == [level, "False"]
