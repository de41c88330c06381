"""Upkeep of lakes beside their feeds: what is in their tables, a plan, and its steps."""

from .join import Executor, Join, NewFile, join
from .lake import Lake, copy_target, lake_of, store_at
from .merge import Merge, MergeReport
from .plan import LakePlan, LakeStep, decode_lake_plan, encode_lake_plan, plan_of
from .report import LakeReport, LakeTable
from .steps import LakeOutcome, carry_out
from .survey import analyze_lake

__all__ = [
    "Executor",
    "Join",
    "Lake",
    "LakeOutcome",
    "LakePlan",
    "LakeReport",
    "LakeStep",
    "LakeTable",
    "Merge",
    "MergeReport",
    "NewFile",
    "analyze_lake",
    "carry_out",
    "copy_target",
    "decode_lake_plan",
    "encode_lake_plan",
    "join",
    "lake_of",
    "plan_of",
    "store_at",
]
