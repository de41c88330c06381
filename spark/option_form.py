"""Options of the data source as Spark gives them: `.option(name, value)`, names in any case, all text."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..config import Form
from ..config.form import nearest
from ..config.url import redacted


class OptionForm(Form):
    """A form whose errors name options: `option partitions = '0': ...`."""

    is_text = True

    def __init__(self, others: str, example: str, doing: str = "") -> None:
        """`others` describes options besides the listed ones, `example` a value of a required one, and
        `doing` their purpose."""
        self._others = others
        self._example = example
        self._doing = doing

    def path(self, where: str, key: str) -> str:
        return f"option {super().path(where, key)}"

    def unknown(self, where: str, key: str, known: Collection[str]) -> str:
        if where:
            return f"option {super().unknown(where, key, known)}"
        hint = nearest(key, known).replace("'", "")
        accepted = ", ".join([*known, self._others])
        return f"option {key}: there is none of this name{self._doing}{hint} (accepted: {accepted})"

    def wrong(self, where: str, key: str, value: object, why: str) -> str:
        shown = redacted(value) if isinstance(value, str) else value
        return f"option {where + '.' if where else ''}{key} = {shown!r}: {why}"

    def conflict(self, where: str, said: str, known: Collection[str]) -> str:
        return self.path(where, said) if not where and said.partition(":")[0] in known else said

    def missing(self, where: str, key: str) -> str:  # noqa: ARG002
        return f"option {key}: missing; {self._example}"


def divided(given: Mapping[str, str], prefix: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options without the prefix, and those with it, with the prefix removed."""
    own, prefixed = {}, {}
    for key, text in given.items():
        if key.lower().startswith(prefix):
            prefixed[key.lower().removeprefix(prefix)] = text
        else:
            own[key] = text
    return own, prefixed
