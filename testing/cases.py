"""Histories as text: commands, ----, what comes of them; blocks are parted by empty lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def check(path: Path, play: Callable[[str], str], rewrite: bool) -> None:
    """Play each block's commands and compare with what the file says; with `rewrite`, write it down first."""
    wanted = path.read_text()
    blocks = [block.partition("----")[0] for block in wanted.strip().split("\n\n")]
    found = "\n\n".join(f"{block}----\n{play(block)}" for block in blocks) + "\n"
    if rewrite:
        path.write_text(found)
    assert found == wanted
