"""Imagining the results of pending jobs, so that nothing is decided as if they were not running."""

from collections.abc import Iterable

import numpy as np

from calamint.decide.records import Suggestion
from calamint.model import Surrogate
from calamint.problem import Problem


def with_pending(
    surrogate: Surrogate,
    problem: Problem,
    pending: Iterable[Suggestion],
    fantasies: int,
    rng: np.random.Generator,
) -> Surrogate:
    """The surrogate conditioned on fantasies of the pending jobs.

    One fantasy is the mean (the Kriging believer); several are drawn from the posterior.
    """
    surrogate = surrogate.repeated(fantasies)
    for job in pending:
        measures = problem.tasks[job.task].measures
        surrogate = surrogate.fantasize(job.point, measures, rng if fantasies > 1 else None)
    return surrogate
