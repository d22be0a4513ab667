"""What to do next: choosing task, input and resource; recommending."""

from calamint.decide.answers import (
    Decision,
    Prediction,
    Recommendation,
    Record,
    Suggestion,
)
from calamint.decide.optimize import Result, optimize
from calamint.decide.optimizer import Optimizer
from calamint.decide.results import ResultError

__all__ = [
    "Decision",
    "Optimizer",
    "Prediction",
    "Recommendation",
    "Record",
    "Result",
    "ResultError",
    "Suggestion",
    "optimize",
]
