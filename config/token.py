"""Tokens of clients, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..errors import ConfigError

MIN_CHARS: Final = 16


def read_token(path: Path, option: str) -> str:
    """Return the token in a file of one line. Raises ConfigError that names the option if there is none."""
    token = _text(path, option).strip()
    if not token or not token.isascii() or any(char.isspace() for char in token):
        raise ConfigError(f"{option}: {path}: expected one line of ASCII without blanks")
    return token


def read_tokens(path: Path, option: str) -> dict[str, str]:
    """Return names of clients by token: each line is a token, or a name and a token. Raises ConfigError."""
    tokens: dict[str, str] = {}
    for number, line in enumerate(_text(path, option).splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if len(words) > 2 or not line.isascii():
            raise ConfigError(f"{option}: {path}: line {number}: expected a token, or a name and a token")
        if len(words[-1]) < MIN_CHARS:
            raise ConfigError(f"{option}: {path}: line {number}: a token has {MIN_CHARS} characters or more")
        tokens[words[-1]] = words[0] if len(words) == 2 else "token"
    if not tokens:
        raise ConfigError(f"{option}: {path}: there is no token in it")
    return tokens


def _text(path: Path, option: str) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"{option}: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{option}: {path}: it isn't UTF-8") from None
