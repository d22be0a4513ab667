"""Site points: where "not better than x*" is imposed."""

import numpy as np
import pytest

import calamint as cm
from calamint.acquire.pesc import sites
from calamint.testbed import CLASSIC


def information(name, count, solutions=20):
    """After so many measurements at random inputs."""
    solved = CLASSIC[name]().coupled()
    optimizer = cm.Optimizer(solved.problem, cm.PESC(solutions), seed=0, initial=0)
    space = solved.problem.space
    for point in np.random.default_rng(1).random((count, space.dimension)):
        params = space.decode(point)
        optimizer.add(params, solved.evaluate(params))
    return optimizer.information()


@pytest.mark.parametrize(("name", "count"), [("toy", 6), ("toy", 40), ("hartmann6", 25)])
def test_points_that_are_left_out_would_have_said_nothing(name, count, monkeypatch):
    kept = information(name, count)
    monkeypatch.setattr(sites, "_LOG_SILENT", -np.inf)
    everything = information(name, count)
    assert np.array_equal(kept.solutions, everything.solutions)
    assert kept.report.sites < everything.report.sites
    x = np.vstack([np.random.default_rng(2).random((200, kept.solutions.shape[1])), kept.solutions])
    # EP ends at a residual of 1e-4: more points may end it elsewhere.
    assert np.allclose(kept.gains.values(x), everything.gains.values(x), atol=2e-4)


def test_more_solutions_are_drawn_while_they_differ():
    def drawn(count, solutions=None):
        return information("toy", count, solutions).report.solutions

    assert drawn(4) > 20
    assert drawn(60) <= 20
    assert drawn(4, solutions=7) == 7


def test_solutions_drawn_later_belong_to_their_own_paths():
    """Each x* is feasible under its own paths, and no candidate is better."""
    found = information("toy", 4, None)
    solutions, paths = found.drawn, found.drawn.paths
    assert len(np.unique(solutions.row)) == found.surrogate.samples
    which = np.arange(len(solutions.points))
    objective, *constraints = (path.value_gradient(which, solutions.points)[0] for path in paths)
    candidates = np.random.default_rng(0).random((300, 2))
    everywhere, *limits = (path.values(candidates) for path in paths)
    met = np.ones_like(everywhere, dtype=bool)
    functions = found.surrogate.constraints
    for function, there, at in zip(functions, limits, constraints, strict=True):
        assert np.all(at[solutions.feasible] > function.low - 1e-5)
        assert np.all(at[solutions.feasible] < function.high + 1e-5)
        met &= (there > function.low) & (there < function.high)
    lowest = np.where(met, everywhere, np.inf).min(axis=1)
    assert np.all(objective[solutions.feasible] < lowest[solutions.feasible] + 1e-3)
