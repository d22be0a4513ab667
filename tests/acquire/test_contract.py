"""What every acquisition promises, whatever it computes."""

from collections import Counter

import numpy as np
import pytest
from tests.acquire.cases import RNG, surrogate_of

import calamint as cm
from calamint.acquire import ACQUISITIONS, EICD, RS, RSDG, Incumbent
from calamint.acquire.entropy import MonteCarloEntropy
from calamint.decide import VirtualClock
from calamint.testbed import toy

ORIGINAL = EICD(MonteCarloEntropy(places=20, draws=200, results=5))
SMALL = {"rs": RS(100, 3000), "rsdg": RSDG(40, 3000), "eicd, original": ORIGINAL}
METHODS = [*ACQUISITIONS, "eicd, original"]


def method_of(name):
    return SMALL[name] if name in SMALL else ACQUISITIONS[name]()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("count", [0, 1, 6])
@pytest.mark.parametrize("state", ["nothing is feasible", "nothing is feasible enough", "feasible"])
def test_values_and_gradients(name, count, state):
    """Finite, of the right shape, independent of the batch, the same under the same seed."""
    space = {"x": cm.Real(0, 1), "n": cm.Integer(1, 4), "k": cm.Choice("a", "b")}
    if name == "rs":  # its grid covers two columns at most
        del space["k"]
    surrogate = surrogate_of(count=count, space=space, feasible=state != "nothing is feasible")
    columns, functions = surrogate.problem.space.dimension, 3
    x = surrogate.problem.space.snap(RNG(5).random((9, columns)))
    method, incumbent = method_of(name), Incumbent(x[0], 0.0 if state == "feasible" else None)
    acq_function = method.build(surrogate, incumbent, RNG(7))
    value, gradient = acq_function.value_gradient(x)
    assert value.shape == (9,)
    assert gradient.shape == (9, columns)
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(gradient))
    assert np.all(gradient[:, 1:] == 0)  # integers and choices do not move smoothly
    shares = acq_function.contributions(x)
    assert shares.shape == (9, functions if method.supports_decoupled and method.uses_model else 1)
    assert np.allclose(shares.sum(-1), value, rtol=1e-9, atol=1e-12)
    assert np.array_equal(acq_function.screening_values(x).shape, shares.shape)
    weighted, _ = acq_function.weighted_gradient(x, np.ones(shares.shape))
    assert np.allclose(weighted, value, rtol=1e-9, atol=1e-12)
    again = method.build(surrogate, incumbent, RNG(7))
    assert np.array_equal(again.value_gradient(x)[0], value)
    alone = [acq_function.value(point[None])[0] for point in x]
    assert np.allclose(value, alone, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_pending_jobs_are_not_suggested_again(name):
    solved = toy().coupled()
    problem = cm.Problem(
        solved.problem.space,
        minimize="f",
        constraints=solved.problem.constraints,
        resources={"here": 2},
    )
    model = cm.Model(hyperparameters="map", noise_variance=1e-6)
    optimizer = cm.Optimizer(problem, method_of(name), model, seed=0)
    for _ in range(6):
        job = optimizer.ask()
        optimizer.tell(job, solved.evaluate(job.params))
    first, second = optimizer.ask_all()
    apart = max(abs(first.params[key] - second.params[key]) for key in first.params)
    assert apart > 1e-3
    assert all(decision.warnings == () for decision in optimizer.decisions)


@pytest.mark.parametrize("name", METHODS)
def test_full_and_partial_decisions(name):
    """On the toy problem, coupled where it has to be: none is made without the method."""
    method = method_of(name)
    solved = toy() if method.supports_decoupled else toy().coupled()
    optimizer = cm.Optimizer(
        solved.problem,
        method,
        cm.Model(hyperparameters="map"),
        seed=1,
        initial=2,
        rationality=1.0,
        clock=VirtualClock({"full": 2.0, "partial": 1.0}),
    )
    for _ in range(12):
        job = optimizer.ask()
        optimizer.tell(job, solved.evaluate(job.params, job.task))
    kinds = Counter(decision.update for decision in optimizer.decisions)
    assert set(kinds) == {"initial", *(["full", "partial"] if method.uses_model else ["random"])}
    assert all(decision.warnings == () for decision in optimizer.decisions)


@pytest.mark.parametrize(
    "name", [n for n in ACQUISITIONS if not ACQUISITIONS[n].supports_decoupled]
)
def test_what_cannot_value_single_functions_says_who_can(name):
    able = [repr(other) for other in ACQUISITIONS if ACQUISITIONS[other].supports_decoupled]
    with pytest.raises(cm.ProblemError, match="measures only some functions") as caught:
        cm.Optimizer(toy().problem, name)
    assert all(other in str(caught.value) for other in able)
    assert "couple=True" in str(caught.value)
    optimizer = cm.Optimizer(toy().problem, name, couple=True)
    assert set(optimizer.ask().resources) == set(optimizer.problem.resources)
    (task,) = optimizer.problem.tasks.values()
    assert set(task.measures) == {"f", "c1", "c2"}
