"""The cases of transactions.txt: events as the server sends them, and the changes made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.errors import SourceError

from .log import Log, Reader, in_words

CASES = Path(__file__).with_name("transactions.txt")


def run(commands: str) -> str:
    """Commands are events (see Log.add) and, for the reader:

    `begin max=N nochecksum`  on the first line: a decoder that parts transactions of more than N bytes
    `read`, `read N`          take in what there is, or N events of it
    `lose`                    the connection is lost, and made again
    `idle T`                  the server has nothing more at second T
    `until`                   stop at the log's present end
    `start`                   begin with a new decoder at the log's present end
    `forge`                   replace the last transaction by another, as no server does
    """
    lines = commands.splitlines()
    options = lines.pop(0).split() if lines[0].startswith("begin") else []
    log = Log(checksums="nochecksum" not in options)
    max_bytes = next((int(option[4:]) for option in options if option.startswith("max=")), 1 << 20)
    reader = Reader(log, log.end, max_bytes=max_bytes)
    output = ""
    for line in lines:
        word, *values = line.split()
        try:
            match word:
                case "read":
                    output += in_words(reader.read(*map(int, values)), reader.tables)
                case "lose":
                    reader.connect()
                case "idle":
                    reader.decoder.idle(float(values[0]))
                case "until":
                    reader.decoder.stop_at(log.end)
                case "forge":
                    log.forget_last_transaction()
                case "start":
                    reader = Reader(log, log.end)
                case _:
                    log.add(line)
        except SourceError as error:
            output += f"SourceError: {error}\n"
    return output


def cases() -> list[tuple[str, str, str]]:
    found = []
    for case in CASES.read_text().split("\n\n"):
        title, _, rest = case.strip().partition("\n")
        commands, _, output = rest.partition("\n----")
        found.append((title, commands, output.lstrip("\n") + "\n"))
    return found


@pytest.mark.parametrize(
    ("title", "commands", "output"), [pytest.param(*case, id=case[0][2:]) for case in cases()]
)
def test_case(title: str, commands: str, output: str) -> None:
    assert run(commands) == output


def test_cases_can_be_rewritten(rewrite: bool) -> None:
    text = "\n".join(f"{title}\n{commands}\n----\n{run(commands)}" for title, commands, _ in cases())
    if rewrite:
        CASES.write_text(text)
    assert CASES.read_text() == text
