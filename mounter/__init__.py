"""Raw changes in commit order to rows and schema changes."""

from .ddl import Tables
from .mounter import Mounter

__all__ = ["Mounter", "Tables"]
