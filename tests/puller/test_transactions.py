"""The cases of transactions.txt: events as the server sends them, and the changes made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.codec.mysql.position import Position
from tidemill.errors import SourceError
from tidemill.testing import cases

from .log import Log, Reader, in_words

CASES = Path(__file__).with_name("transactions.txt")


def run(commands: str) -> str:
    """Commands are events (see Log.add) and, for the reader:

    `begin max=N nochecksum noends again=TABLE`  on the first line: a decoder that parts transactions of more
                              than N bytes, and of which TABLE is loaded again
    `loads TABLE`             the load of that table begins
    `read`, `read N`          take in what there is, or N events of it
    `lose`                    the connection is lost, and made again
    `idle T`                  the server has nothing more at second T
    `until`                   stop at the log's present end
    `start [POSITION]`        begin with a new decoder there, or at the log's present end
    `forge`                   replace the last transaction by another, as no server does
    """
    lines = commands.splitlines()
    options = lines.pop(0).split() if lines[0].startswith("begin") else []
    log = Log(checksums="nochecksum" not in options, tells_ends="noends" not in options)
    max_bytes = next((int(option[4:]) for option in options if option.startswith("max=")), 1 << 20)
    again = [option[6:] for option in options if option.startswith("again=")]
    reader = Reader(log, log.end, max_bytes=max_bytes, again=again)
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
                case "loads":
                    schema, table = values[0].split(".")
                    reader.unneeded.load_begins((schema, table))
                case "forge":
                    log.forget_last_transaction()
                case "start":
                    reader = Reader(log, Position.parse(" ".join(values)) if values else log.end)
                case _:
                    log.add(line)
        except SourceError as error:
            output += f"SourceError: {error}\n"
    return output


@pytest.mark.parametrize("case", cases.load(CASES), ids=cases.title)
def test_case(case: cases.Case, rewrite: bool) -> None:
    case.expect(run(case.commands).rstrip("\n"), rewrite)
