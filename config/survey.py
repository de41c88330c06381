"""Findings common to several kinds of sinks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from ..events import Checkpoint
from . import Finding


def writable_file(path: Path) -> Finding:
    """Return a finding: can a file be written or created?"""
    if path.is_dir():
        return Finding("error", f"{path} is a directory: name a file in it")
    return _writable(path, [path.parent, path])


def writable_directory(path: Path) -> Finding:
    """Return a finding: can files be created in a directory, or the directory itself?"""
    if path.exists() and not path.is_dir():
        return Finding("error", f"{path} is no directory: name another one, or remove that file")
    return _writable(path, [path])


def _writable(path: Path, needed: list[Path]) -> Finding:
    """If `path` exists, `needed` must be writable; otherwise its parent must be."""
    if not path.parent.is_dir():
        text = f"{path} can't be made: there is no directory {path.parent}"
        return Finding("error", text, remedy=(f"mkdir -p {quote(str(path.parent))}",))
    for one in needed if path.exists() else [path.parent]:
        if not os.access(one, os.W_OK):
            text = f"{path} can't be written: {one} is not writable"
            return Finding("error", text, remedy=(f"chmod u+w {quote(str(one))}",))
    return Finding("ok", f"{path} {'is there' if path.exists() else 'will be made'}")


@dataclass(frozen=True, slots=True)
class Begins(Finding):
    """A target's checkpoint. `check` says in its place where the feed begins there."""

    at: Checkpoint | None = None
    """The target's checkpoint; None if it has none."""


def begins(checkpoint: Checkpoint | None) -> Begins:
    """Return a finding: which checkpoint does the target have?"""
    if checkpoint is None or not checkpoint.position:
        return Begins("ok", "has no position yet", at=checkpoint)
    return Begins("ok", f"has position {checkpoint.position}", at=checkpoint)
