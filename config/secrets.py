"""Documents of options whose secrets are "***", for those who may see the rest.

A secret is an option that its dataclass declares with `repr=False`, the password of a URL, and a string of
which nothing is declared: a misspelled key may be that of a password. A variable of the environment, such as
"${PASSWORD}", is no secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import ConfigError
from .declaration import Option, alternatives, declaration, section_type, sections_type

STARS: Final = "***"

_VARIABLE: Final = re.compile(r"\$\{\w+\}")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*:/+")
_NAMED: Final = re.compile(r"password|passwd|secret|token|credential|(^|_)key$", re.IGNORECASE)


def masked(cls: type, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of an options dataclass, its secrets as "***"; it may have errors."""
    return _section(document, _options([cls]))


def unmasked(cls: type, document: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document in which each value that is the masked form of the stored one is that again.

    Raises ConfigError for another secret that is "***".
    """
    result = _restored(document, stored, masked(cls, stored), "")
    assert isinstance(result, dict)
    return result


def masked_url(url: str) -> str:
    """Return a URL, or what was meant as one, whose password is "***"; its user is shown."""
    return _replaced_secrets(url, _stars)


def with_variables(url: str, name: str) -> tuple[str, dict[str, str]]:
    """Return a URL with variables of the environment in place of its secrets, and these secrets by variable.

    `name` begins the names of the variables, as in "${SOURCE_PASSWORD}". A secret that is a variable already
    stays, and so does a user without a password.
    """
    secrets: dict[str, str] = {}

    def variable(what: str, secret: str) -> str:
        if what == _LOGIN:
            return secret
        key = re.sub(r"\W", "_", f"{name}_{what}").upper()
        secrets[key] = secret
        return f"${{{key}}}"

    return _replaced_secrets(url, variable), secrets


_LOGIN: Final = "login"
"""A user without a password, which may be a token."""


def _stars(_what: str, _secret: str) -> str:
    return STARS


def _replaced_secrets(url: str, replaced: Callable[[str, str], str]) -> str:
    """Return a URL with the result of `replaced` for each secret, of which it is told what it is."""
    login, sign, place = url.rpartition("@")
    scheme = _SCHEME.match(login)
    begin = scheme[0] if scheme else ""
    user, colon, password = login[len(begin) :].partition(":")
    if sign and colon:
        hidden = password if _VARIABLE.fullmatch(password) else replaced("password", password)
        url = f"{begin}{user}:{hidden}@{place}"
    elif sign and begin and user and not _VARIABLE.fullmatch(user):
        url = f"{begin}{replaced(_LOGIN, user)}@{place}"
    return _replaced_in_query(url, replaced)


def _replaced_in_query(url: str, replaced: Callable[[str, str], str]) -> str:
    def pair(text: str) -> str:
        key, sign, value = text.partition("=")
        is_secret = sign and value and _NAMED.search(key) and not _VARIABLE.fullmatch(value)
        return f"{key}={replaced(key, value)}" if is_secret else text

    place, mark, query = url.partition("?")
    return place + mark + "&".join(map(pair, query.split("&")))


def _options(classes: Sequence[type]) -> dict[str, list[Option]]:
    """Return the options of any of these classes, with those of the kinds that a URL chooses."""
    found: dict[str, list[Option]] = {}
    for cls in classes:
        declared = declaration(cls)
        for one in [declared, *(declaration(variant.options) for variant in declared.variants())]:
            for name, option in one.options.items():
                found.setdefault(name, []).append(option)
    return found


def _section(document: Mapping[str, Any], options: Mapping[str, list[Option]]) -> dict[str, Any]:
    return {key: _value(key, value, options.get(key)) for key, value in document.items()}


def _value(key: str, value: Any, options: list[Option] | None) -> Any:
    if options is None:
        return _undeclared(value)
    kinds = [kind for option in options for kind in alternatives(option.kind)]
    sections = [one for kind in kinds if (one := section_type(kind) or sections_type(kind)) is not None]
    is_hidden = any(option.is_hidden for option in options)
    match value:
        case dict() if sections:
            return _section(value, _options(sections))
        case list() if sections:
            return [_value(key, item, options) for item in value]
        case dict():
            return {name: _value(name, item, options) for name, item in value.items()}
        case list():
            return [_value(key, item, options) for item in value]
        case str() if _VARIABLE.fullmatch(value) or not value:
            return value
        case str() if ":/" in value or "@" in value:
            return masked_url(value)
        case str() if _NAMED.search(key) and key not in {option.name for option in options}:
            return STARS  # within a table of which only the name is declared
        case str() if is_hidden and not _is_table(options) and not key.startswith("url"):
            return STARS
        case str() if key.startswith("url"):
            return _replaced_in_query(value, _stars)
    return value


def _is_table(options: list[Option]) -> bool:
    """True for a table whose own keys are declared elsewhere."""
    return any("dict" in str(option.kind) or "Mapping" in str(option.kind) for option in options)


def _undeclared(value: Any) -> Any:
    match value:
        case dict():
            return {name: _undeclared(item) for name, item in value.items()}
        case list():
            return [_undeclared(item) for item in value]
        case str() if value and not _VARIABLE.fullmatch(value):
            return STARS
    return value


def _restored(value: Any, stored: Any, hidden: Any, path: str) -> Any:
    if value == hidden and type(value) is type(hidden):
        return stored
    match value:
        case dict():
            is_table = isinstance(stored, dict)
            return {
                key: _restored(
                    item,
                    stored.get(key) if is_table else None,
                    hidden.get(key) if is_table else None,
                    f"{path}.{key}" if path else key,
                )
                for key, item in value.items()
            }
        case list():
            return [
                _restored(item, *_same(item, number, stored, hidden), path)
                for number, item in enumerate(value)
            ]
        case str() if re.search(rf"(^|[:=/]){re.escape(STARS)}($|@|&)", value):
            raise ConfigError(f"{path}: {STARS} stands for a stored secret, and is no value: give the secret")
    return value


def _same(item: Any, number: int, stored: Any, hidden: Any) -> tuple[Any, Any]:
    """Return the stored item with the name of this one, or of the same number, and its masked form."""
    if not isinstance(stored, list) or not isinstance(hidden, list):
        return None, None
    if isinstance(item, dict) and "name" in item:
        for one, shown in zip(stored, hidden, strict=True):
            if isinstance(one, dict) and one.get("name") == item["name"]:
                return one, shown
        return None, None
    return (stored[number], hidden[number]) if number < len(stored) else (None, None)
