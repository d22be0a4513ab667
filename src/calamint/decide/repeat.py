"""Measuring an input again, once, to learn whether functions are noisy.

Measurements at different inputs can be explained by a smooth function and noise, or by a rough one
without. As long as both are possible, single lucky values pass for good inputs. One repeated
measurement tells which it is.
"""

import numpy as np

from calamint.decide.observations import Observations
from calamint.decide.records import Record, rank
from calamint.decide.settings import Settings
from calamint.decide.state import State
from calamint.model import Data, Hyperparameters
from calamint.problem import Problem

# With fewer inputs noise is always possible, and there is nothing to choose among.
_MIN_INPUTS = 10
NOISELESS = 1e-4  # variance, in standardised units


def repeat_due(
    problem: Problem,
    settings: Settings,
    state: State,
    observations: Observations,
    competing: list[str],
) -> tuple[str, Record] | None:
    """A task that should measure an input again, and what it measured there.

    Each task does so once, at its best input, if one of its functions may be noisy, and has not
    been measured twice anywhere.
    """
    learnt = None if state.full is None else state.full.after
    if learnt is None:
        return None
    for task in competing:
        measures = problem.tasks[task].measures
        if task in observations.repeated or not any(
            _may_be_noisy(name, settings, observations, learnt.get(name)) for name in measures
        ):
            continue
        if any(_has_replicates(observations.data[name]) for name in measures):
            continue
        records = [record for record in observations.history if record.values.keys() & {*measures}]
        return task, min(records, key=lambda record: rank(problem, record))
    return None


def _has_replicates(data: Data) -> bool:
    return len(np.unique(data.inputs, axis=0)) < len(data)


def _may_be_noisy(
    name: str,
    settings: Settings,
    observations: Observations,
    learnt: Hyperparameters | None,
) -> bool:
    data = observations.data[name]
    known = settings.model.noise_is_fixed(name) or not np.all(np.isnan(data.noise_variance))
    if learnt is None or known or len(data) < _MIN_INPUTS:
        return False
    return float(np.mean(learnt.noise_variance)) >= NOISELESS
