"""Calamint: which measurement to make next, at which input, on which machine."""

from typing import TYPE_CHECKING

from calamint.lazy import lazy_exports

if TYPE_CHECKING:
    from calamint.acquire import (
        EIC,
        EICD,
        EV,
        IECI,
        PESC,
        RS,
        RSDG,
        AugmentedLagrangian,
        Random,
        Thompson,
    )
    from calamint.decide import (
        Optimizer,
        Prediction,
        Recommendation,
        Settings,
        Suggestion,
        VirtualClock,
        optimize,
    )
    from calamint.errors import (
        AccessError,
        CalamintError,
        JobStateError,
        ProblemError,
        ResultError,
        StorageError,
        TaskError,
        UnknownJobError,
    )
    from calamint.model import Model
    from calamint.problem import Choice, Constraint, Integer, Problem, Real, Task
    from calamint.run import (
        Dask,
        InProcess,
        Job,
        Local,
        Progress,
        RemoteStudy,
        Simulated,
        Study,
        Watcher,
        connect,
    )
    from calamint.show import Live, plots

__version__ = "0.1.0"

__all__ = [
    "EIC",
    "EICD",
    "EV",
    "IECI",
    "PESC",
    "RS",
    "RSDG",
    "AccessError",
    "AugmentedLagrangian",
    "CalamintError",
    "Choice",
    "Constraint",
    "Dask",
    "InProcess",
    "Integer",
    "Job",
    "JobStateError",
    "Live",
    "Local",
    "Model",
    "Optimizer",
    "Prediction",
    "Problem",
    "ProblemError",
    "Progress",
    "Random",
    "Real",
    "Recommendation",
    "RemoteStudy",
    "ResultError",
    "Settings",
    "Simulated",
    "StorageError",
    "Study",
    "Suggestion",
    "Task",
    "TaskError",
    "Thompson",
    "UnknownJobError",
    "VirtualClock",
    "Watcher",
    "connect",
    "optimize",
    "plots",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "errors": (
            "AccessError",
            "CalamintError",
            "JobStateError",
            "ProblemError",
            "ResultError",
            "StorageError",
            "TaskError",
            "UnknownJobError",
        ),
        "problem": ("Choice", "Constraint", "Integer", "Problem", "Real", "Task"),
        "model": ("Model",),
        "acquire": (
            "EIC",
            "EICD",
            "EV",
            "IECI",
            "PESC",
            "RS",
            "RSDG",
            "AugmentedLagrangian",
            "Random",
            "Thompson",
        ),
        "decide": (
            "Optimizer",
            "Prediction",
            "Recommendation",
            "Settings",
            "Suggestion",
            "VirtualClock",
            "optimize",
        ),
        "run": (
            "Dask",
            "InProcess",
            "Job",
            "Local",
            "Progress",
            "RemoteStudy",
            "Simulated",
            "Study",
            "Watcher",
            "connect",
        ),
        "show": ("Live",),
    },
    whole=("show.plots",),
)
