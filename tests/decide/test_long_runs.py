"""Whole optimisations, long enough to need patience."""

import math
from collections import Counter

import numpy as np
import pytest

import calamint as cm
from calamint.testbed import CLASSIC

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "evaluations", "gap"),
    [("toy", 27, 1e-3), ("gardner1", 40, 1e-2), ("branin", 40, 1e-2), ("gardner2", 50, 5e-2)],
)
def test_expected_improvement_solves_two_dimensional_problems(name, evaluations, gap):
    solved = CLASSIC[name]().coupled()
    gaps = []
    for seed in range(3):
        optimizer = cm.Optimizer(solved.problem, "eic", seed=seed)
        for _ in range(evaluations):
            job = optimizer.ask()
            optimizer.tell(job, solved.evaluate(job.params))
        gaps.append(solved.gap(optimizer.recommend().params, tolerance=1e-6))
        assert all(decision.update != "fallback" for decision in optimizer.decisions)
    assert sorted(gaps)[1] < gap


def noise_free(values, rng):
    return values


def noisy(values, rng):
    return {name: value + 0.1 * rng.standard_normal() for name, value in values.items()}


def flat(values, rng):
    """Differences at the edge of what a float can tell beside a large constant."""
    return {name: 1e6 + 1e-9 * value for name, value in values.items()}


@pytest.mark.parametrize("tasks", ["together", "apart"])
@pytest.mark.parametrize("data", [noise_free, noisy, flat, "duplicated"])
def test_two_hundred_decisions_in_a_row(data, tasks):
    """None raises, and what had to be done more simply is in the log."""
    solved = CLASSIC["toy"]().coupled() if tasks == "together" else CLASSIC["toy"]()
    rng = np.random.default_rng(0)
    # Measured together there is more data for each function, so one estimate must do.
    model = cm.Model(hyperparameters="map" if tasks == "together" else "sampled")
    optimizer = cm.Optimizer(solved.problem, model=model, seed=0, rationality=1.0)
    for _ in range(200):
        job = optimizer.ask()
        values = solved.evaluate(job.params, job.task)
        if data == "duplicated":  # the same few inputs again and again, whatever is suggested
            place = {"x1": round(job.params["x1"]), "x2": round(job.params["x2"])}
            optimizer.cancel(job)
            optimizer.add(place, solved.evaluate(place, job.task))
        else:
            optimizer.tell(job, data(values, rng))
    kinds = Counter(decision.update for decision in optimizer.decisions)
    assert kinds["fallback"] == 0
    assert kinds["full"] + kinds["partial"] > 180
    assert all(decision.warnings == () for decision in optimizer.decisions if data is not flat)
    found = optimizer.recommend()
    assert math.isfinite(found.objective)
    if data is noise_free:
        assert solved.gap(found.params, tolerance=1e-6) < 1e-4
