"""Translation of Spark's errors to tidemill's, with one sentence."""

from __future__ import annotations

import re
import sys
from typing import Final

from pyspark import __version__ as pyspark_version

from ... import errors
from ...errors import ConfigError, Fatal, Retryable, TidemillError

_OURS: Final = re.compile(r"^(?:\w+: )?tidemill\.[\w.]*\.(\w+): (.+)$", re.MULTILINE)
_PASSING: Final = (
    "Python worker failed to connect back",  # within 10 s: the machine is overloaded
    "java.io.OptionalDataException",  # Spark sent a task's properties while another query changed them
)
_MAX_CHARS: Final = 500

_ADVICE: Final = "set PYSPARK_PYTHON to a Python {} that every worker has there, with tidemill installed"
_HERE: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_OF_WORKERS: Final = (
    (
        re.compile(r"PYTHON_VERSION_MISMATCH\].{0,500}?: ([\d.]+)"),
        f"the workers have another Python than the driver: {{0}}, and not {_HERE}: {_ADVICE.format(_HERE)}",
    ),
    (
        re.compile(r'Cannot run program "([^"\n]{1,500})"[^\n]{0,500}?: ([^\n]+)'),
        f"a worker can't run {{0}}: {{1}}: {_ADVICE.format(_HERE)}",
    ),
    (
        re.compile(r"No module named '(?!importlib\b)(\w+)"),  # importlib is reported by an old Python
        "the workers' Python has no {0}: pip install 'tidemill[spark]' on each of them",
    ),
    (
        re.compile(r"^[ \t]*(\w.*)\nPYTHONPATH was", re.MULTILINE),
        f"the workers' Python doesn't start ({{0}}): {_ADVICE.format(_HERE)}",
    ),
    (
        re.compile("(Master removed our application|Cannot call methods on a stopped SparkContext)"),
        f"the master took no application, or gave it up: it must be of Spark {pyspark_version}; and where "
        "executors end one after the other, each says why in work/app-…/…/stderr on its worker, for instance "
        "that it can't reach the driver (spark.driver.host)",
    ),
)
"""Errors of a cluster: pattern of Spark's message, and the sentence for people."""


def explain(error: BaseException, doing: str) -> TidemillError:
    """Return the error that a task, a reader or a writer raised; otherwise the first line of Spark's."""
    if isinstance(error, TidemillError):
        return error
    text = _everything(error)
    if named := _OURS.findall(text):
        return _named(*named[-1])
    for pattern, sentence in _OF_WORKERS:
        if match := pattern.search(text):
            return ConfigError(sentence.format(*match.groups()))
    kind = Retryable if any(passing in text for passing in _PASSING) else Fatal
    return kind(f"{doing}: {_first_line(text)[:_MAX_CHARS]}")


def _first_line(text: str) -> str:
    """Return Java's message if there is one, otherwise Python's first line."""
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
    kind = getattr(errors, name, Retryable)  # Unavailable, ReplayRequired and similar
    error: TidemillError = kind(message)
    return error
