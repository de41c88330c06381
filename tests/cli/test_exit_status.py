"""The exit status of commands, their one line about an error, and colours."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from tidemill.engine.status import StatusFile
from tidemill.testing.child import CLI

from .test_cli import STATUS

COLOUR = re.compile(r"\x1b\[(\d+;)*(3|9|4|10)\d")

INTERRUPTIBLE = """
import signal
from tidemill.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background processes ignore it
main()
"""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'[?]: see tidemill --help"),
        (
            ["bench", "sorter", "--event", "1"],
            r"No such option: --event .*: see tidemill bench sorter --help",
        ),
        (["diff"], "Missing argument 'FEED.TOML': see tidemill diff --help"),
        (["bench", "lake", "--rows", "0"], r"Invalid value for '--rows': .*: see tidemill bench lake --help"),
        (["check"], "source.url: missing; for instance .*"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(call, words: list[str], sentence: str) -> None:
    status, out, err = call(*words)
    assert (status, out) == (2, "")
    assert re.fullmatch(f"tidemill: {sentence}\n", err), err


def test_without_a_command_the_help_is_shown_and_the_status_is_2(call) -> None:
    for words in [], ["bench"]:
        status, out, err = call(*words)
        assert (status, out, err.startswith("Usage: tidemill")) == (2, "", True)
    assert call("--help")[0] == 0


def test_an_error_of_a_server_comes_with_advice_and_status_1(call, tmp_path: Path) -> None:
    status, _, err = call("init", "mysql://root@127.0.0.1:1", "--out", tmp_path / "feed.toml")
    assert status == 1
    assert err.endswith(": see if the server runs, and if this machine reaches it\n")
    assert err.count("\n") == 1


def test_a_command_that_is_interrupted_ends_with_130() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"mysql://root@127.0.0.1:{server.getsockname()[1]}"
        command = [sys.executable, "-c", INTERRUPTIBLE, "init", url, "--out", os.devnull + "/none"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            connection, _ = server.accept()
            with connection:  # it waits for a greeting
                process.send_signal(signal.SIGINT)
                out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "")


def on_terminal(command: list[str], **variables: str) -> str:
    """Return what a command prints on a terminal."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm"} | variables
    ):
        os.close(theirs)
        printed = b""
        with suppress(OSError):  # its end
            while part := os.read(ours, 4096):
                printed += part
    os.close(ours)
    return printed.decode()


def test_colours_are_for_terminals_and_not_with_no_color(call, tmp_path: Path) -> None:
    StatusFile(tmp_path).save(msgspec.structs.replace(STATUS, state="failed", detail="the disk is full"))
    command = [*CLI, "status", "--data-dir", str(tmp_path)]
    shown = on_terminal(command)
    assert COLOUR.search(shown), shown
    without = on_terminal(command, NO_COLOR="1")
    assert "the disk is full" in without
    assert not COLOUR.search(without)
    assert "\x1b" not in call("status", "--data-dir", tmp_path)[1]
