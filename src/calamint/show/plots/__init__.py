"""Plots of a study or an optimiser: where it stands, what is believed, and why.

`cm.plots.progress(study)` and `study.plots.progress()` are the same. Plotly is not needed for
optimising: `pip install 'calamint[plots]'`.
"""

from collections.abc import Callable
from functools import partial
from typing import final

from calamint.run import StudyView
from calamint.show.plots.compare import compare
from calamint.show.plots.contours import contours
from calamint.show.plots.decisions import decisions, evaluations, time, timeline
from calamint.show.plots.explain import explain
from calamint.show.plots.limits import limits, trade_off
from calamint.show.plots.parameters import importance, parallel_coordinates
from calamint.show.plots.plot import Plot
from calamint.show.plots.progress import progress
from calamint.show.plots.slices import slices
from calamint.show.plots.trust import trust

__all__ = [
    "PLOTS",
    "Plot",
    "Plots",
    "compare",
    "contours",
    "decisions",
    "evaluations",
    "explain",
    "importance",
    "limits",
    "parallel_coordinates",
    "progress",
    "slices",
    "time",
    "timeline",
    "trade_off",
    "trust",
]

# In the order of a report.
PLOTS: dict[str, Callable[..., Plot]] = {
    each.__name__: each
    for each in (
        progress,
        trade_off,
        limits,
        slices,
        contours,
        importance,
        parallel_coordinates,
        decisions,
        evaluations,
        time,
        timeline,
        trust,
        explain,
        compare,
    )
}


@final
class Plots:
    """The plots of a study: `study.plots.progress()`."""

    def __init__(self, study: StudyView) -> None:
        self._study = study

    def __getattr__(self, name: str) -> Callable[..., Plot]:
        if name not in PLOTS:
            raise AttributeError(f"there is no plot {name!r}: choose from {', '.join(PLOTS)}.")
        return partial(PLOTS[name], self._study)

    def __dir__(self) -> list[str]:
        return list(PLOTS)
