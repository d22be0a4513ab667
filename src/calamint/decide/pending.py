"""Imagining the results of pending jobs, so that nothing is decided as if they were not running."""

from collections.abc import Iterable

import numpy as np

from calamint.decide.records import Suggestion
from calamint.model import Belief
from calamint.problem import Problem


def with_pending(
    belief: Belief,
    problem: Problem,
    pending: Iterable[Suggestion],
    fantasies: int,
    rng: np.random.Generator,
) -> Belief:
    """The belief as if every pending job had found what is expected of it (the Kriging believer),
    or, with more than one fantasy, results drawn under each."""
    belief = belief.repeated(fantasies)
    for job in pending:
        measures = problem.tasks[job.task].measures
        belief = belief.fantasize(job.point, measures, rng if fantasies > 1 else None)
    return belief
