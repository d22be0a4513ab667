"""Any sequence of tells, corrections, changes and restarts leaves what a study has that was told
the truth at once: data, pending jobs, counts, beliefs, and, begun cold, the next suggestion."""

import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.run.test_corrections import assert_alike, believed, cold

import calamint as cm

PROBLEM = cm.Problem(
    {"x": cm.Real(0, 1)},
    minimize="cost",
    constraints=["purity >= 0.5"],
    tasks={"brew": cm.Task(measures=["cost", "purity"])},
    resources={"local": 9},
)
# What it may be changed to: narrower and wider bounds, other limits, another capacity.
CHANGES = [
    PROBLEM,
    PROBLEM.changed(resources={"local": 12}),
    PROBLEM.changed(space={"x": cm.Real(0.3, 0.7)}),
    PROBLEM.changed(space={"x": cm.Real(-1, 2)}, constraints=["purity >= 0.7"]),
    PROBLEM.changed(constraints=["0.2 <= purity <= 0.6"]),
]
GIVEN = [({"x": x}, {"cost": (x - 0.4) ** 2, "purity": x}) for x in (0.1, 0.35, 0.6, 0.95)]
NUMBERS = st.floats(-2, 2).map(lambda value: round(value, 3))
INPUTS = st.floats(0, 1).map(lambda value: round(value, 3))


def opened(storage="sqlite://", problem=PROBLEM):
    model = cm.Model(hyperparameters="map", transform="none", noise_variance=1e-4)
    return cm.Study(problem, storage, seed=5, model=model, initial=2, pause=0.0)


class Truth:
    """What is true of a job: where it was measured, what, and how it stands."""

    def __init__(self, job):
        self.params, self.used, self.values = job.params, None, {}
        self.first = None  # what was told at first: state, input and values
        self.state = "running"

    def begin(self, state, used, values):
        self.state, self.used, self.values = state, used, dict(values)
        self.first = state, used, dict(values)


class Corrections(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{Path(self.folder.name) / 'a.db'}"
        self.problem = PROBLEM
        self.study = opened(self.url)
        self.study.add_all(GIVEN)
        self.jobs = {}
        self.order = []

    def teardown(self):
        if hasattr(self, "folder"):
            self.study.resume(task="brew")
            if self.jobs:
                assert_alike(cold(self.study), cold(self.truth()))
            self.study.database.close()
            self.folder.cleanup()

    def truth(self):
        """A study that was told at once what is true now."""
        study = opened(problem=self.problem)
        study.add_all(GIVEN, outside=True)
        for truth in self.jobs.values():  # perhaps out of the bounds of today
            study._store.enqueue("brew", truth.params)
        asked = {number: study.ask() for number in self.jobs}
        for number in self.order:
            truth, job = self.jobs[number], asked[number]
            if truth.state == "done":
                study.tell(job, truth.values, 1.0, truth.used)
            elif truth.state == "partial":
                study.tell(job, truth.values, 1.0, truth.used, more=True)
            elif truth.state == "failed":
                study.fail(job, "no")
            else:
                study.cancel(job)
        return study

    def those(self, *states):
        return [number for number, truth in self.jobs.items() if truth.state in states]

    def pick(self, data, *states):
        numbers = self.those(*states)
        return data.draw(st.sampled_from(numbers)) if numbers else None

    @rule()
    def restart(self):
        self.study.database.close()
        self.study = opened(self.url, self.problem)

    @precondition(lambda self: len(self.jobs) < 8)
    @rule()
    def ask(self):
        job = self.study.ask()
        if job is not None:
            self.jobs[job.number] = Truth(job)

    @rule(data=st.data(), cost=NUMBERS, purity=NUMBERS, more=st.booleans(), used=st.none() | INPUTS)
    def tell(self, data, cost, purity, more, used):
        number = self.pick(data, "running")
        if number is None:
            return
        values = {"cost": cost} if more else {"cost": cost, "purity": purity}
        at = None if used is None else {"x": used}
        self.study.tell(number, values, 1.0, at, more)
        self.jobs[number].begin("partial" if more else "done", at, values)
        self.order.append(number)

    @rule(data=st.data())
    def fail(self, data):
        number = self.pick(data, "running")
        if number is not None:
            self.study.fail(number, "no")
            self.jobs[number].begin("failed", None, {})
            self.order.append(number)

    @rule(data=st.data(), cost=NUMBERS, used=st.none() | INPUTS)
    def amend(self, data, cost, used):
        number = self.pick(data, "done", "partial")
        if number is None:
            return
        truth = self.jobs[number]
        name = data.draw(st.sampled_from(sorted(truth.values)))
        self.study.amend(number, {name: cost}, None if used is None else {"x": used}, "a typo")
        truth.values[name] = cost
        truth.used = truth.used if used is None else {"x": used}

    @rule(data=st.data(), purity=NUMBERS)
    def complete(self, data, purity):
        number = self.pick(data, "partial", "failed")
        if number is None:
            return
        truth = self.jobs[number]
        values = {} if "cost" in truth.values else {"cost": purity}
        values["purity"] = purity
        self.study.complete(number, values)
        truth.state, truth.values = "done", {**truth.values, **values}

    @rule(data=st.data())
    def give_up(self, data):
        """Expect no more of a job that was told in part."""
        number = self.pick(data, "partial")
        if number is not None:
            self.study.cancel(number)
            self.jobs[number].state = "done"

    @rule(data=st.data())
    def withdraw(self, data):
        number = self.pick(data, "done", "partial", "failed")
        if number is not None:
            self.study.withdraw(number, "it does not count")
            self.jobs[number].state = "withdrawn"

    @rule(data=st.data())
    def restore(self, data):
        number = self.pick(data, "done", "partial", "failed", "withdrawn")
        if number is None:
            return
        truth = self.jobs[number]
        try:
            self.study.restore(number)
        except cm.ResultError:
            assert truth.first == (truth.state, truth.used, truth.values)
        else:
            truth.begin(*truth.first)

    @rule(problem=st.sampled_from(CHANGES))
    def change(self, problem):
        changed = self.study.change(problem)
        assert bool(changed) == (problem != self.problem)
        self.problem = problem
        assert (self.study._store.study_row().state is None) or not changed

    @precondition(lambda self: self.study.changes)
    @rule()
    def change_back(self):
        self.problem = self.study.problem_before()
        self.study.change(self.problem, "undone")

    @rule(kind=st.sampled_from(["pause", "resume"]))
    def pause(self, kind):
        getattr(self.study, kind)(task="brew")

    @invariant()
    def is_as_if_told_at_once(self):
        if hasattr(self, "study") and self.jobs:
            assert believed(self.study) == believed(self.truth())


TestCorrections = Corrections.TestCase
TestCorrections.settings = settings(
    max_examples=12,
    stateful_step_count=16,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
