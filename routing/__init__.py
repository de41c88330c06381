"""Which changes go where."""

from .filter import TableFilter

__all__ = ["TableFilter"]
