"""Text from outside on one line of a terminal or a log."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return the text with control characters as escapes, such as \n: names of tables may contain them."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )
