"""Temporal values as the source prints them, with as many fraction digits as their column has."""

from __future__ import annotations

from datetime import datetime, timedelta


def time_text(value: timedelta | str, scale: int = 6) -> str:
    """ "-838:59:59.999999": hours may exceed a day."""
    if isinstance(value, str):
        return value
    micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    sign = "-" if micros < 0 else ""
    seconds, micros = divmod(abs(micros), 1_000_000)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{f'{micros:06}'[:scale]}" if scale else text


def datetime_text(value: datetime | str, scale: int = 6) -> str:
    """ "2024-02-29 13:00:00.000000", without a zone: a timestamp is in UTC."""
    if isinstance(value, str):
        return value
    return value.isoformat(" ", "microseconds")[: 20 + scale if scale else 19]
