"""EP on data that the optimiser itself collected: measured where it matters, and noise-free."""

import pytest

import calamint as cm
from calamint.acquire import PESC, Acquisition
from calamint.testbed import CLASSIC


class Watched(Acquisition):
    """PESC that keeps its reports."""

    name, supports_decoupled = "watched", True

    def __init__(self):
        self.reports = []

    def build(self, surrogate, incumbent, rng):
        acq_function = PESC().build(surrogate, incumbent, rng)
        self.reports.append(acq_function.report)
        return acq_function


def three_limits():
    """Test Function 2 of the constrained optimisation literature."""
    problem = cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)},
        minimize="f",
        constraints=["c1 >= 0", "c2 >= 0", "c3 >= 0"],
    )

    def evaluate(p):
        x, y = p["x"], p["y"]
        return {
            "f": (x - 1) ** 2 + (y - 0.5) ** 2,
            "c1": 12 - ((x - 3) ** 2 + (y + 2) ** 2) * 2.718281828459045 ** (-(y**7)),
            "c2": 7 - 10 * x - y,
            "c3": 0.2 - (x - 0.5) ** 2 - (y - 0.5) ** 2,
        }

    return problem, evaluate


def classic(name):
    solved = CLASSIC[name]().coupled()
    return solved.problem, solved.evaluate


@pytest.mark.parametrize(
    ("make", "limits", "decisions"),
    [
        (lambda: classic("gardner1"), 1, 20),
        (three_limits, 3, 20),
        (lambda: classic("speed_reducer"), 11, 10),
    ],
    ids=["K=1", "K=3", "K=11"],
)
@pytest.mark.parametrize("hyperparameters", ["sampled", "map"])
def test_ep_converges_on_collected_data(make, limits, decisions, hyperparameters):
    problem, evaluate = make()
    assert len(problem.constraints) == limits
    watched = Watched()
    model = cm.Model(hyperparameters=hyperparameters)
    optimizer = cm.Optimizer(problem, watched, model, seed=1)
    for _ in range(optimizer.initial + decisions):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, evaluate(suggestion.params))
    repeated = sum(decision.update == "repeat" for decision in optimizer.decisions)
    assert repeated <= 1
    assert len(watched.reports) == decisions - repeated
    drawn = sum(report.solutions for report in watched.reports)
    assert sum(report.converged for report in watched.reports) >= 0.98 * drawn
    assert not any(decision.warnings for decision in optimizer.decisions)
