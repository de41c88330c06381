"""Lakes that feeds write: what is in their tables, and a plan that keeps them quick to read."""

from .lake import Lake
from .plan import LakePlan, LakeStep, decode_lake_plan, encode_lake_plan
from .report import LakeReport, LakeTable
from .survey import analyze_lake
from .upkeep import LakeOutcome, carry_out

__all__ = [
    "Lake",
    "LakeOutcome",
    "LakePlan",
    "LakeReport",
    "LakeStep",
    "LakeTable",
    "analyze_lake",
    "carry_out",
    "decode_lake_plan",
    "encode_lake_plan",
]
