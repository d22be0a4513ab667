"""What to do next: choosing task, input and resource; recommending."""

from calamint.decide.capacity import free_capacity, placement
from calamint.decide.clock import Clock, VirtualClock
from calamint.decide.decision import remake
from calamint.decide.optimize import Result, optimize
from calamint.decide.optimizer import Optimizer
from calamint.decide.queries import FunctionPrediction, Prediction, Recommendation
from calamint.decide.records import Decision, Record, Suggestion
from calamint.decide.results import Value, read_seconds, read_values
from calamint.decide.settings import Rationality, Settings
from calamint.decide.simulation import Duration, SimulatedJob, duration_of, simulate
from calamint.decide.state import FullUpdate, State

__all__ = [
    "Clock",
    "Decision",
    "Duration",
    "FullUpdate",
    "FunctionPrediction",
    "Optimizer",
    "Prediction",
    "Rationality",
    "Recommendation",
    "Record",
    "Result",
    "Settings",
    "SimulatedJob",
    "State",
    "Suggestion",
    "Value",
    "VirtualClock",
    "duration_of",
    "free_capacity",
    "optimize",
    "placement",
    "read_seconds",
    "read_values",
    "remake",
    "simulate",
]
