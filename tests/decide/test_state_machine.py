"""Anything a user may do, in any order, on any graph: nothing breaks, nothing is over-booked."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import calamint as cm
from calamint.acquire import PESC
from calamint.decide import VirtualClock
from calamint.errors import ResultError

FUNCTIONS = ("f", "c", "d")


@st.composite
def problems(draw):
    """Random tasks over random resources; every function is measured by some task."""
    resources = {
        f"r{i}": draw(st.integers(1, 3)) for i in range(draw(st.integers(1, 3), label="resources"))
    }
    groups = [
        group
        for size in range(1, len(resources) + 1)
        for group in itertools.combinations(resources, size)
    ]
    sets = draw(st.lists(st.sets(st.sampled_from(FUNCTIONS), min_size=1), min_size=1, max_size=4))
    left = set(FUNCTIONS).difference(*sets)
    tasks = {
        f"t{i}": cm.Task(
            measures=sorted(measures),
            runs_on=[
                list(g)
                for g in draw(
                    st.lists(st.sampled_from(groups), min_size=1, max_size=2, unique=True)
                )
            ],
            cost=draw(st.sampled_from([1.0, 0.1, 30.0, "learn"])),
            failures=draw(st.sampled_from(["model", "retry", "ignore"])),
        )
        for i, measures in enumerate([*sets, left] if left else sets)
    }
    used = {name for task in tasks.values() for place in task.runs_on for name in place}
    return cm.Problem(
        {"x": cm.Real(0, 1), "n": cm.Integer(1, 4), "o": cm.Choice("a", "b")},
        minimize="f",
        constraints=["c >= 0", "-0.5 <= d <= 0.5"],
        tasks=tasks,
        resources={name: resources[name] for name in resources if name in used},
    )


def true_values(params):
    x, n = params["x"], params["n"]
    return {
        "f": x + 0.1 * n,
        "c": math.sin(6 * x) - 0.2 * (params["o"] == "a"),
        "d": x * n - 1.0,
    }


class Laboratory(RuleBasedStateMachine):
    """Jobs are asked for, and end in every way that they can."""

    @initialize(
        problem=problems(),
        rationality=st.sampled_from([math.inf, 1.0, 0.0, "batch"]),
        fantasies=st.sampled_from([1, 3]),
        acquisition=st.sampled_from(["pesc", "pesc", "pesc", "random"]),
        initial=st.sampled_from([0, 0, 1]),
        seed=st.integers(0, 99),
    )
    def start(self, problem, rationality, fantasies, acquisition, initial, seed):
        self.clock = VirtualClock({"full": 2.0, "partial": 0.5})
        self.optimizer = cm.Optimizer(
            problem,
            PESC(3) if acquisition == "pesc" else acquisition,
            cm.Model(hyperparameters="map"),
            seed=seed,
            initial=initial,
            rationality=rationality,
            fantasies=fantasies,
            clock=self.clock,
        )
        self.running = {}
        self.ended = []

    def began(self, job):
        if job is None:
            return
        assert job.number not in self.running
        task = self.optimizer.problem.tasks[job.task]
        assert job.resources in task.runs_on
        assert self.optimizer.problem.space.validate(job.params) == job.params
        self.running[job.number] = job

    def free(self):
        used = Counter(r for job in self.running.values() for r in job.resources)
        capacity = self.optimizer.problem.graph.resources
        return {name: capacity[name] - used[name] for name in capacity}

    def could_start(self, only=None):
        """Whether any task has free places; by brute force."""
        free = self.free()
        return any(
            all(free[r] > 0 for r in place)
            for name, task in self.optimizer.problem.tasks.items()
            for place in task.runs_on
            if only is None or name == only
        )

    @rule()
    def ask(self):
        could = self.could_start()
        job = self.optimizer.ask()
        # Something that has waited long may be kept a place for; else a free place is used.
        assert could or job is None
        self.began(job)

    @rule(data=st.data())
    def ask_on_a_resource(self, data):
        name = data.draw(st.sampled_from(sorted(self.optimizer.problem.graph.resources)))
        job = self.optimizer.ask(resource=name)
        assert job is None or name in job.resources
        self.began(job)

    @rule(data=st.data())
    def ask_for_a_task(self, data):
        name = data.draw(st.sampled_from(sorted(self.optimizer.problem.tasks)))
        could = self.could_start(name)
        job = self.optimizer.ask(task=name)
        assert (job is not None) == could
        assert job is None or job.task == name
        self.began(job)

    @rule()
    def ask_all(self):
        for job in self.optimizer.ask_all():
            self.began(job)
        assert self.optimizer.ask() is None

    def take(self, data):
        number = data.draw(st.sampled_from(sorted(self.running)))
        job = self.running.pop(number)
        self.ended.append(job)
        return job

    @precondition(lambda self: self.running)
    @rule(data=st.data(), seconds=st.sampled_from([None, 0.0, 1.0, 1e6]), noisy=st.booleans())
    def tell(self, data, seconds, noisy):
        job = self.take(data)
        values = true_values(job.params)
        measures = self.optimizer.problem.tasks[job.task].measures
        shift = float(np.random.default_rng(job.number).normal()) if noisy else 0.0
        self.optimizer.tell(job, {name: values[name] + shift for name in measures}, seconds)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), broken=st.sampled_from([math.nan, math.inf, None]))
    def tell_some(self, data, broken):
        """One function broke, others were measured or left out."""
        job = self.take(data)
        values = true_values(job.params)
        first, *others = self.optimizer.problem.tasks[job.task].measures
        failures = len(self.optimizer.failures)
        self.optimizer.tell(job, {first: broken, **{name: values[name] for name in others[:1]}})
        assert len(self.optimizer.failures) == failures + 1

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def fail(self, data):
        self.optimizer.fail(self.take(data), "the machine stopped")

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def cancel(self, data):
        self.optimizer.cancel(self.take(data))

    @precondition(lambda self: self.ended)
    @rule(data=st.data(), way=st.sampled_from(["tell", "fail", "cancel"]))
    def end_again(self, data, way):
        job = data.draw(st.sampled_from(self.ended))
        given = {"tell": ({"f": 0.0},), "fail": ("again",), "cancel": ()}[way]
        with pytest.raises(ResultError, match="was already"):
            getattr(self.optimizer, way)(job, *given)

    @rule(
        x=st.floats(0, 1),
        n=st.integers(1, 4),
        names=st.sets(st.sampled_from(FUNCTIONS), min_size=1),
    )
    def add(self, x, n, names):
        params = {"x": x, "n": n, "o": "b"}
        values = true_values(params)
        self.optimizer.add(params, {name: values[name] for name in names})

    @rule(seconds=st.floats(0, 1e4))
    def time_passes(self, seconds):
        self.clock.move(self.clock.now() + seconds)

    @rule()
    def recommend(self):
        found = self.optimizer.recommend()
        assert 0 <= found.probability <= 1
        assert math.isfinite(found.objective)

    @invariant()
    def pending_is_asked_minus_finished(self):
        if hasattr(self, "optimizer"):
            assert {job.number for job in self.optimizer.pending} == set(self.running)

    @invariant()
    def no_resource_is_over_booked(self):
        if hasattr(self, "optimizer"):
            assert all(left >= 0 for left in self.free().values())

    @invariant()
    def no_decision_fell_back(self):
        if hasattr(self, "optimizer"):
            for decision in self.optimizer.decisions:
                assert decision.update != "fallback", decision.warnings
                assert decision.warnings == ()


TestLaboratory = Laboratory.TestCase
TestLaboratory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
