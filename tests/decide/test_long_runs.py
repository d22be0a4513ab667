"""Whole optimisations, long enough to need patience."""

import math

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
        assert all(decision.kind != "fallback" for decision in optimizer.decisions)
    assert sorted(gaps)[1] < gap


def test_two_hundred_decisions_in_a_row():
    solved = CLASSIC["toy"]().coupled()
    optimizer = cm.Optimizer(solved.problem, "eic", cm.Model(hyperparameters="map"), seed=0)
    for _ in range(200):
        job = optimizer.ask()
        optimizer.tell(job, solved.evaluate(job.params))
    assert all(decision.kind != "fallback" for decision in optimizer.decisions)
    assert math.isfinite(optimizer.recommend().objective)
    assert solved.gap(optimizer.recommend().params, tolerance=1e-6) < 1e-4
