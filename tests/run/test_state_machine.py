"""Any sequence of steps, by several processes' worth of studies, with restarts between them."""

import math
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.run.cases import check_books, quick, values_of
from tests.run.servers import new_database
from tests.run.test_kill import url_of

import calamint as cm
from calamint.run.jobs import CAUSES

TASKS = st.sampled_from([None, "price", "weigh"])
WHO = st.integers(0, 1)


class StudyMachine(RuleBasedStateMachine):
    """Two studies on one file, opened again and again, beside a plain list of what was told."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.new_place()
        self.studies = [self.opened(), self.opened()]
        self.held = []  # jobs that were asked for and have not spoken
        self.told = []
        self.ended = set()

    def new_place(self):
        return Path(self.folder.name) / "study.db"

    def opened(self):
        return quick(storage=url_of(self.path), pause=0.0, retries=1)

    def teardown(self):
        if hasattr(self, "folder"):
            for study in self.studies:
                study.database.close()
            self.folder.cleanup()

    @rule(who=WHO)
    def restart(self, who):
        self.studies[who].database.close()
        self.studies[who] = self.opened()

    @rule(who=WHO, task=TASKS, leased=st.booleans())
    def ask(self, who, task, leased):
        job = self.studies[who].ask(task=task, lease=1e-6 if leased else None)
        if job is not None:
            assert job.number not in self.ended
            assert (job.number, job.attempt) not in {(j.number, j.attempt) for j in self.held}
            self.held.append(job)

    def pick(self, data):
        return self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))

    @precondition(lambda self: self.held)
    @rule(who=WHO, data=st.data(), broken=st.booleans())
    def tell(self, who, data, broken):
        job = self.pick(data)
        values = values_of(job.task, job.params)
        if broken:
            values = dict.fromkeys(values, math.nan)
        used = self.studies[who].tell(job, values, seconds=1.0)
        if not (broken and job.task == "weigh"):  # that is tried again, or has failed for good
            assert used == (job.number not in self.ended)
        if used and not broken:
            self.told.append((job.params, values))
        if self.studies[who].jobs[job.number].state in ("done", "failed"):
            self.ended.add(job.number)
        try:
            self.studies[who].tell(job, values)
            raise AssertionError("a second tell was accepted")
        except cm.ResultError:
            pass

    @precondition(lambda self: self.held)
    @rule(who=WHO, data=st.data(), cause=st.sampled_from(CAUSES))
    def fail(self, who, data, cause):
        job = self.pick(data)
        self.studies[who].fail(job, "no", cause)
        record = self.studies[who].jobs[job.number]
        if record.state == "failed":
            self.ended.add(job.number)
            assert record.cause in ("crashed", "timeout")

    @rule(who=WHO, forgive=st.booleans(), number=st.integers(0, 9))
    def put_right(self, who, forgive, number):
        """Release a job that is held, or forgive one that failed; others are refused."""
        study = self.studies[who]
        state = study.jobs[number].state if number < len(study.jobs) else "none"
        try:
            study.forgive(number) if forgive else study.release(number)
            assert state == ("failed" if forgive else "held")
        except cm.ResultError:
            assert state != ("failed" if forgive else "held")

    @precondition(lambda self: self.held)
    @rule(who=WHO, data=st.data())
    def cancel(self, who, data):
        job = self.held[data.draw(st.integers(0, len(self.held) - 1))]
        record = self.studies[who].jobs[job.number]
        try:
            self.studies[who].cancel(job)
        except cm.ResultError:
            # One that waits, or is held, has no attempt that runs.
            over = record.state in ("done", "failed", "cancelled", "withdrawn", "waiting", "held")
            assert over or record.attempts != job.attempt
        else:
            self.ended.add(job.number)

    @rule(who=WHO, x=st.floats(0, 1), value=st.floats(-1e6, 1e6))
    def add(self, who, x, value):
        self.studies[who].add({"x": x, "y": 0.5}, {"f": value})
        self.told.append(({"x": x, "y": 0.5}, {"f": value}))

    @rule(who=WHO, task=st.sampled_from(["price", "weigh"]), x=st.floats(0, 1))
    def enqueue(self, who, task, x):
        self.studies[who].enqueue(task, {"x": x, "y": 0.25})

    @invariant()
    def nothing_is_lost(self):
        if not hasattr(self, "studies"):
            return
        jobs = self.studies[0].jobs
        for study in self.studies:
            assert [(r.params, r.values) for r in study.history] == self.told
            # Only what may be the input's fault is learnt, and not if it was forgiven.
            failed = [(job.task, job.params) for job in jobs if job.state == "failed"]
            assert sorted(study.optimizer.observations.failed_at, key=repr) == sorted(
                failed, key=repr
            )
        lost = {j.number for j in self.studies[0].jobs if j.state == "failed"}
        self.ended |= lost
        check_books(self.path)


class ServerMachine(StudyMachine):
    """The same on PostgreSQL."""

    def new_place(self):
        return new_database()


TestStudy = StudyMachine.TestCase
TestServer = ServerMachine.TestCase
TestStudy.settings = TestServer.settings = settings(
    max_examples=15,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes, on a disk
)
