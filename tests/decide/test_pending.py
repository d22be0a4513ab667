"""Many pending jobs: which of them are fantasized, what counts of the others, and how often."""

import numpy as np
import pytest

import calamint as cm
from calamint.decide import decision, pending
from calamint.decide.pending import MOST_FANTASIZED, Novelty, and_more_pending, to_fantasize

SPACE = {f"x{index}": cm.Real(0, 1) for index in range(3)}
MODEL = cm.Model(hyperparameters="map")


def values_at(params):
    x = np.array(list(params.values()))
    return {"f": float(((x - 0.4) ** 2).sum()), "c": float(np.sin(3 * x[1]) + x[2] - 0.6)}


def with_places(count, **settings):
    """An optimiser that has measured twelve inputs."""
    problem = cm.Problem(
        SPACE,
        "f",
        constraints=["c >= 0"],
        tasks={"cost": cm.Task("f", runs_on="farm"), "check": cm.Task("c", runs_on="farm")},
        resources={"farm": count},
    )
    optimizer = cm.Optimizer(problem, model=MODEL, initial=0, **settings)
    for row in np.random.default_rng(0).random((12, 3)).tolist():
        params = dict(zip(SPACE, row, strict=True))
        optimizer.add(params, values_at(params))
    return optimizer


@pytest.fixture
def updates(monkeypatch):
    """How many partial updates there were."""
    calls, update = [], decision.partial_update

    def counted(*arguments):
        calls.append(arguments)
        return update(*arguments)

    monkeypatch.setattr(decision, "partial_update", counted)
    return calls


def test_many_places_are_filled_without_the_same_input_twice(updates):
    optimizer = with_places(300, rationality="batch")
    jobs = optimizer.ask_all()
    assert len(jobs) == 300
    assert len({(job.task, *job.params.values()) for job in jobs}) == 300
    # Every job but for the first sixteen is one of a batch, and updates end with the fantasies.
    assert len(updates) < 16 + 16 * np.log(MOST_FANTASIZED / 16) + 2
    assert len(optimizer.state.update.fantasized_jobs) == MOST_FANTASIZED


def test_jobs_of_a_batch_are_no_closer_than_if_all_were_fantasized(monkeypatch):
    def distances():
        jobs = with_places(120, rationality="batch").ask_all()
        return nearest(np.array([list(job.params.values()) for job in jobs if job.task == "cost"]))

    batch = distances()
    monkeypatch.setattr(pending, "_WORTH_AN_UPDATE", 10**9)
    exact = distances()
    assert np.quantile(batch, 0.1) > np.quantile(exact, 0.1)


def nearest(x):
    squares = ((x[:, None] - x) ** 2).sum(-1)
    np.fill_diagonal(squares, np.inf)
    return np.sqrt(squares.min(axis=1))


def test_full_updates_fantasize_a_bounded_number():
    optimizer = with_places(MOST_FANTASIZED + 40)
    free = {"farm": 1}
    rng = np.random.default_rng(2)
    for number in range(MOST_FANTASIZED + 30):
        params = dict(zip(SPACE, rng.random(3).tolist(), strict=True))
        point = optimizer.problem.space.encode(params)
        job = cm.Suggestion(number, "cost", params, ("farm",), point=point)
        optimizer.enqueue(job)
    state, job, made = optimizer.decide(optimizer.competing(free))
    assert made.update == "full"
    assert state.update.fantasized_jobs == tuple(range(MOST_FANTASIZED))
    assert len(state.update.fantasized.functions["f"].posterior.inputs) == 12 + MOST_FANTASIZED
    assert len(state.update.fantasized.functions["c"].posterior.inputs) == 12
    assert job.number == MOST_FANTASIZED + 30


def test_fantasies_of_new_jobs_are_added_to_those_of_the_last_update():
    """The same numbers as from the beginning, to the last bit."""
    optimizer = with_places(40, rationality="batch")
    for _ in range(10):
        optimizer.ask()
    state, seen = optimizer.state, optimizer.observations
    wanted = to_fantasize(optimizer.problem, seen)
    rng = np.random.default_rng(0)
    more = and_more_pending(state.update, seen.version, wanted)
    anew = pending.with_pending(state.update.surrogate, wanted, 1, rng)
    for name, function in anew.functions.items():
        found = more.functions[name].posterior
        assert np.array_equal(found.inputs, function.posterior.inputs)
        assert np.array_equal(found.weights, function.posterior.weights)
        assert np.array_equal(found.inverse_root, function.posterior.inverse_root)
    assert len(state.update.fantasized_jobs) == 9
    # If a result came, or a job was cancelled, all is made anew.
    assert and_more_pending(state.update, seen.version + 1, wanted) is None
    assert and_more_pending(state.update, seen.version, wanted[1:]) is None


def test_an_update_is_recent_until_something_is_told_or_cancelled(updates):
    optimizer = with_places(80, rationality="batch")
    jobs = [optimizer.ask() for _ in range(64)]
    before = len(updates)
    jobs.append(optimizer.ask())
    jobs.append(optimizer.ask())
    assert len(updates) == before  # they are among the others
    optimizer.cancel(jobs[0])
    optimizer.ask()
    assert len(updates) == before + 1
    optimizer.tell(jobs[1], {name: values_at(jobs[1].params)[name] for name in measures(jobs[1])})
    assert optimizer.ask().update == "full"


def measures(job):
    return ("f",) if job.task == "cost" else ("c",)


def test_a_study_that_is_reopened_while_places_are_filled_goes_on_alike(tmp_path):
    def study(name):
        problem = with_places(60).problem
        return cm.Study(
            problem, f"sqlite:///{tmp_path / name}.db", model=MODEL, initial=3, rationality="batch"
        )

    def fill(open_again):
        name = f"open-{open_again}"
        found = study(name)
        for _ in range(6):
            job = found.ask()
            found.tell(job, {each: values_at(job.params)[each] for each in measures(job)})
        jobs = []
        for number in range(40):
            if open_again and number in (10, 25, 33):
                found = study(name)
            jobs.append(found.ask())
        return [(job.task, job.params) for job in jobs]

    assert fill(False) == fill(True)


def test_the_novelty_of_an_input_has_its_gradient():
    rng = np.random.default_rng(3)
    novelty = Novelty(rng.random((7, 4)), np.array([0.2, 0.5, 1.0, 3.0]))
    x = rng.random((20, 4))
    value, gradient = novelty.value_gradient(x)
    assert np.array_equal(value, novelty.value(x))
    assert np.all((value > 0) & (value <= 1))
    step = 1e-6
    for column in range(4):
        shift = np.zeros(4)
        shift[column] = step
        difference = (novelty.value(x + shift) - novelty.value(x - shift)) / (2 * step)
        assert gradient[:, column] == pytest.approx(difference, abs=1e-5)
    at, slope = novelty.value_gradient(novelty.points)
    assert np.all(at < 1e-9)
    assert np.all(slope == 0)
    assert novelty.value(np.full((1, 4), 1e6)) == 1


def test_what_is_pending_of_other_functions_does_not_count():
    optimizer = with_places(4)
    surrogate = optimizer.query().surrogate
    job = optimizer.ask()
    told = optimizer.observations.coming(optimizer.problem)
    other = {"f", "c"} - set(measures(job))
    assert Novelty.of(told, surrogate, measures(job)) is not None
    assert Novelty.of(told, surrogate, other) is None
    assert Novelty.of([], surrogate, ("f", "c")) is None
