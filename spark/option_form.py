"""Options of the data source as Spark gives them: `.option(name, value)`, names in any case, all text."""

from __future__ import annotations

from collections.abc import Mapping

from ..config import Form


def option_form(others: str, example: str, noun: str = "option") -> Form:
    """Return a form whose errors name options: `option partitions = '0': ...`. `others` are options besides
    the declared ones, `example` is a value of a required one."""
    return Form(is_text=True, noun=noun, before="option ", shows_values=True, others=others, example=example)


def divided(given: Mapping[str, str], prefix: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options without the prefix, and those with it, with the prefix removed."""
    own, prefixed = {}, {}
    for key, text in given.items():
        if key.lower().startswith(prefix):
            prefixed[key.lower().removeprefix(prefix)] = text
        else:
            own[key] = text
    return own, prefixed
