"""Measuring an input again, once, to learn whether functions are noisy.

Measurements at different inputs can be explained by a smooth function and noise, or by a rough one
without. As long as both are possible, single lucky values pass for good inputs. One repeated
measurement tells which it is.
"""

from collections.abc import Iterable

import numpy as np

from calamint.decide.observations import Observations
from calamint.decide.recommend import best_likely
from calamint.decide.records import Record, within_bounds
from calamint.decide.settings import Settings
from calamint.model import Surrogate, feasibility
from calamint.problem import Problem

# With fewer inputs noise is always possible, and there is nothing to choose among.
_MIN_INPUTS = 10
_NOISELESS = 1e-4  # variance, in standardised units


def repeat_due(
    problem: Problem,
    settings: Settings,
    surrogate: Surrogate,
    observations: Observations,
    competing: Iterable[str],
) -> tuple[str, Record] | None:
    """A task that should measure an input again, and what it measured there.

    Each task does so once, at the best of its inputs that are likely to be feasible, if one of its
    functions may be noisy, and has not been measured twice anywhere.
    """
    for task in competing:
        measures = problem.tasks[task].measures
        data = [observations.data[name] for name in measures]
        if (
            task in observations.repeated
            or not any(_may_be_noisy(name, settings, surrogate, observations) for name in measures)
            or any(each.has_replicates for each in data)
        ):
            continue
        records = [
            record
            for record in within_bounds(problem.space, observations.history)
            if record.values.keys() & {*measures}
        ]
        if not records:
            continue
        points = np.array([record.point for record in records])
        objective = surrogate.expected_objective(points)
        probability = feasibility.probability(surrogate, points)
        best = best_likely(objective, probability, settings.delta)
        if best is not None:
            return task, records[best]
    return None


def _may_be_noisy(
    name: str, settings: Settings, surrogate: Surrogate, observations: Observations
) -> bool:
    data = observations.data[name]
    if name in surrogate.problem.binary or settings.model.noise_is_fixed(name):
        return False
    if len(data) < _MIN_INPUTS or not np.all(np.isnan(data.noise_variance)):
        return False
    return noise_is_possible(surrogate, name)


def noise_is_possible(surrogate: Surrogate, name: str) -> bool:
    """Whether the model leaves room for noise, or for roughness that it takes for noise."""
    return float(surrogate.functions[name].posterior.noise.mean()) >= _NOISELESS
