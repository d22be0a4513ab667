"""Imagining the results of pending jobs, so that nothing is decided as if they were not running."""

from collections.abc import Iterable

import numpy as np

from calamint.decide.records import Suggestion
from calamint.model import Surrogate


def with_pending(
    surrogate: Surrogate,
    pending: Iterable[tuple[Suggestion, tuple[str, ...]]],
    fantasies: int,
    rng: np.random.Generator,
) -> Surrogate:
    """The surrogate conditioned on fantasies of the pending jobs and the functions that they tell.

    One fantasy is the mean (the Kriging believer); several are drawn from the posterior.
    """
    surrogate = surrogate.repeated(fantasies)
    for job, measures in pending:
        surrogate = surrogate.fantasize(job.point, measures, rng if fantasies > 1 else None)
    return surrogate
