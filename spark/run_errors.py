"""What Spark says of a failure, as one of our errors: one sentence."""

from __future__ import annotations

import re
from typing import Final

from .. import errors
from ..errors import ConfigError, Fatal, Retryable, TidemillError

_OURS: Final = re.compile(r"^(?:\w+: )?tidemill\.[\w.]*\.(\w+): (.+)$", re.MULTILINE)
_PYTHON: Final = re.compile(r"PYTHON_VERSION_MISMATCH\]\s*(.+)")
_MAX_CHARS: Final = 500


def explain(error: BaseException, doing: str) -> TidemillError:
    """The error that a task, a reader or a writer raised; else what Spark says, in its first line."""
    if isinstance(error, TidemillError):
        return error
    text = _everything(error)
    if found := _OURS.findall(text):
        return _named(*found[-1])
    if mismatch := _PYTHON.search(text):
        return ConfigError(
            f"the workers have another Python than the driver: {mismatch[1]}; set PYSPARK_PYTHON"
        )
    if "No module named 'tidemill'" in text:
        return ConfigError("the workers have no tidemill: pip install 'tidemill[spark]' on each of them")
    return Fatal(f"{doing}: {_first_line(text)[:_MAX_CHARS]}")


def _first_line(text: str) -> str:
    """What Java says, where it was Java; Python's first line only says that it was."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["failed without a reason"]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])


def _everything(error: BaseException) -> str:
    parts = [str(error)]
    cause = error.__cause__ or getattr(error, "cause", None)
    while cause is not None and len(parts) < 10:
        parts.append(str(cause))
        cause = getattr(cause, "__cause__", None)
    return "\n".join(parts)


def _named(name: str, message: str) -> TidemillError:
    kind = getattr(errors, name, Retryable)  # Unavailable, NotKept and others like them
    found: TidemillError = kind(message)
    return found
