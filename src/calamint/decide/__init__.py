"""What to do next: choosing task, input and resource; recommending."""

from calamint.decide.answers import (
    Decision,
    Prediction,
    Recommendation,
    Record,
    Suggestion,
)
from calamint.decide.clock import Clock, VirtualClock
from calamint.decide.optimize import Result, optimize
from calamint.decide.optimizer import Optimizer
from calamint.decide.results import ResultError
from calamint.decide.simulate import Ran, simulate

__all__ = [
    "Clock",
    "Decision",
    "Optimizer",
    "Prediction",
    "Ran",
    "Recommendation",
    "Record",
    "Result",
    "ResultError",
    "Suggestion",
    "VirtualClock",
    "optimize",
    "simulate",
]
