"""What to do next: choosing task, input and resource; recommending."""

from typing import TYPE_CHECKING

from calamint.lazy import lazy_exports

if TYPE_CHECKING:
    from calamint.decide.capacity import CanStart, anywhere, available_resources, free_capacity
    from calamint.decide.clock import Clock, VirtualClock
    from calamint.decide.confirm import default_confirmations, tasks_to_measure_all
    from calamint.decide.decision import recompute_update
    from calamint.decide.measured import MeasuredInput, input_key, measured_inputs
    from calamint.decide.observations import Observations
    from calamint.decide.optimize_function import Result, optimize
    from calamint.decide.optimizer import Optimizer
    from calamint.decide.queries import FunctionPrediction, Prediction, Query
    from calamint.decide.records import (
        REASONS,
        Decision,
        Recommendation,
        Record,
        Suggestion,
        short,
    )
    from calamint.decide.results import Value, parse_seconds, read_values
    from calamint.decide.settings import Rationality, Settings, read_settings
    from calamint.decide.simulation import Duration, SimulatedJob, duration_of, simulate
    from calamint.decide.state import FullUpdate, State

__all__ = [
    "REASONS",
    "CanStart",
    "Clock",
    "Decision",
    "Duration",
    "FullUpdate",
    "FunctionPrediction",
    "MeasuredInput",
    "Observations",
    "Optimizer",
    "Prediction",
    "Query",
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
    "anywhere",
    "available_resources",
    "default_confirmations",
    "duration_of",
    "free_capacity",
    "input_key",
    "measured_inputs",
    "optimize",
    "parse_seconds",
    "read_settings",
    "read_values",
    "recompute_update",
    "short",
    "simulate",
    "tasks_to_measure_all",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "capacity": ("CanStart", "anywhere", "free_capacity", "available_resources"),
        "clock": ("Clock", "VirtualClock"),
        "confirm": ("default_confirmations", "tasks_to_measure_all"),
        "decision": ("recompute_update",),
        "measured": ("MeasuredInput", "input_key", "measured_inputs"),
        "observations": ("Observations",),
        "optimize_function": ("Result", "optimize"),
        "optimizer": ("Optimizer",),
        "queries": ("FunctionPrediction", "Prediction", "Query"),
        "records": ("REASONS", "Decision", "Recommendation", "Record", "Suggestion", "short"),
        "results": ("Value", "parse_seconds", "read_values"),
        "settings": ("Rationality", "Settings", "read_settings"),
        "simulation": ("Duration", "SimulatedJob", "duration_of", "simulate"),
        "state": ("FullUpdate", "State"),
    },
)
