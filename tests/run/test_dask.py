"""Jobs on a real Dask cluster: workers that offer different resources, and what becomes of jobs if
workers, the scheduler or the run itself are killed."""

import contextlib
import json
import os
import random
import signal
import sys
import time

import pytest
from tests.run.cases import SQUARE, check_books, decoupled, quick, values_of
from tests.run.clusters import Cluster
from tests.run.test_kill import Log, forked

import calamint as cm
from calamint.run.execute import remote

ONE = cm.Problem(SQUARE, minimize="f", tasks={"run": cm.Task("f")}, resources={"here": 3})


IN_THE_HALL = {"run": cm.Task("f", runs_on="hall")}


class Noted:
    """A function that writes down when it begins and ends, and on which resources."""

    def __init__(self, task, log, seconds=0.1):
        self.task, self.log, self.seconds = task, str(log.path), seconds

    def _write(self, kind, params):
        line = f"{kind} {params['x']!r} {time.time()!r}\n"
        log = os.open(self.log, os.O_WRONLY | os.O_APPEND)
        os.write(log, line.encode())
        os.close(log)

    def __call__(self, params):
        self._write(f"begin-{self.task}", params)
        time.sleep(self.seconds)
        self._write(f"end-{self.task}", params)
        return values_of(self.task, params)


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path / "cluster")
    yield cluster
    cluster.close()


@pytest.fixture
def trio(cluster):
    """Three workers that offer different resources."""
    for offers in ("office=1", "hall=1", "hall=1"):
        cluster.start_worker(offers)
    cluster.wait_for_workers(3)
    return cluster


def messages_to(said):
    def on(event):
        if event.kind == "message":
            said.append(event.message)

    return on


def most_at_once(log, tasks):
    """Of jobs of some tasks, by what they wrote."""
    running = most = 0
    for kind, *_ in log.lines():
        word, _, task = kind.partition("-")
        if task in tasks:
            running += 1 if word == "begin" else -1
            most = max(most, running)
    return most


def test_a_decoupled_study_on_workers_with_different_resources(trio, tmp_path):
    log = Log(tmp_path / "log")
    study = cm.Study(decoupled(), f"sqlite:///{tmp_path / 'a.db'}", seed=0, initial=2)
    tasks = {task: Noted(task, log) for task in study.problem.tasks}
    report = study.run(tasks, evaluations=24, executor=cm.Dask(trio.address))
    assert (report.evaluations, report.failed) == (24, 0)
    assert study.recommend().probability > 0.5
    check_books(tmp_path / "a.db")
    # 'price' needs the office; 'weigh' may use it, too: three places in all.
    assert most_at_once(log, ("price",)) == 1
    assert most_at_once(log, ("price", "weigh")) <= 3
    resources = {job.resources for job in study.jobs}
    assert ("office",) in resources
    assert ("hall",) in resources


def test_nothing_queues_inside_dask(cluster, tmp_path):
    """The problem has room for three, the cluster for one; then for another."""
    cluster.start_worker("here=1", 4)
    cluster.wait_for_workers(1)
    log = Log(tmp_path / "log")
    study, running = quick(ONE), []

    def on(event):
        if event.kind == "ended":
            running.append(len(event.progress.running))
            if len(running) == 4:
                cluster.start_worker("here=1", 4)
                cluster.wait_for_workers(2)

    study.run(Noted("price", log), evaluations=16, executor=cm.Dask(cluster.address), on=on)
    assert max(running[:4]) == 1
    assert max(running) == 2
    assert most_at_once(log, ("price",)) == 2


def test_workers_that_declare_nothing_take_a_job_for_each_thread(cluster, tmp_path):
    cluster.start_worker("", 2)
    cluster.wait_for_workers(1)
    log = Log(tmp_path / "log")
    quick(ONE).run(Noted("price", log, 0.3), evaluations=6, executor=cm.Dask(cluster.address))
    assert most_at_once(log, ("price",)) == 2


def moody(params):
    """What happens depends on x."""
    x = params["x"]
    print("x is", x, flush=True)
    if x < 0.2:
        os._exit(7)
    if x < 0.4:
        os.kill(os.getpid(), signal.SIGKILL)
    if x < 0.6:
        raise ValueError("x is in the middle")
    if x < 0.8:
        time.sleep(3600)
    return {"f": x}


def test_causes_outputs_and_time_outs_are_those_of_local_processes(trio, tmp_path):
    problem = ONE.changed(tasks=IN_THE_HALL, resources={"hall": 2})
    study = quick(problem, f"sqlite:///{tmp_path / 'a.db'}")
    for x in (0.1, 0.3, 0.5, 0.7, 0.9):
        study.enqueue("run", {"x": x, "y": 0.5})
    report = study.run(moody, evaluations=5, executor=cm.Dask(trio.address, timeout=1.0))
    assert report.failed == 4
    causes = [(job.state, job.cause) for job in study.jobs]
    crashed = ("failed", "crashed")
    assert causes == [crashed, crashed, crashed, ("failed", "timeout"), ("done", None)]
    reasons = [job.reason for job in study.jobs]
    assert "exit code 7" in reasons[0]
    assert "SIGKILL" in reasons[1]
    assert "ValueError: x is in the middle" in reasons[2]
    assert "longer than 1 s" in reasons[3]
    folder = tmp_path / "a.db.jobs" / "study"
    assert (folder / "job-4-1" / "stdout.txt").read_text() == "x is 0.9\n"
    assert "ValueError" in (folder / "job-2-1" / "stderr.txt").read_text()
    assert not list(folder.rglob("result-*"))  # all are stored


def test_commands(trio, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(
        "import json, os, sys\n"
        "params = json.load(sys.stdin)\n"
        "print(os.environ['CALAMINT_RESOURCES'], os.getcwd(), file=sys.stderr)\n"
        "print(json.dumps({'f': [params['x'], 0.1]}))\n"
    )
    problem = ONE.changed(tasks=IN_THE_HALL, resources={"hall": 2})
    study = quick(problem, "sqlite:///a.db")
    executor = cm.Dask(trio.address)
    study.run({"run": [sys.executable, "program.py"]}, evaluations=2, executor=executor)
    assert all(record.sem == {"f": pytest.approx(0.1)} for record in study.history)
    said = (tmp_path / "a.db.jobs" / "study" / "job-0-1" / "stderr.txt").read_text()
    assert said == f"hall {tmp_path}\n"
    with pytest.raises(cm.TaskError, match="no-such-program"):
        study.run({"run": ["no-such-program"]}, evaluations=4, executor=cm.Dask(trio.address))


def test_a_job_that_somebody_cancels_is_ended(trio, tmp_path):
    """Its process ends, and its place is free."""
    url, mark = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "pid"
    problem = ONE.changed(tasks=IN_THE_HALL, resources={"hall": 1})
    study, other = quick(problem, url), quick(problem, url)

    def first_hangs(params):
        if not mark.exists():
            mark.write_text(str(os.getpid()))
            time.sleep(3600)
        return {"f": params["x"]}

    def on(event):
        if event.kind == "started" and event.job.number == 0:
            while not mark.exists() or not mark.read_text():
                time.sleep(0.02)
            other.cancel(0)

    report = study.run(first_hangs, evaluations=3, executor=cm.Dask(trio.address), on=on, lease=0.9)
    assert report.evaluations == 3
    assert [job.state for job in study.jobs] == ["cancelled", "done", "done", "done"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_clusters_of_dask_and_clients_can_be_given(caplog):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        for given in (local, client):
            study, said = quick(ONE), []
            report = study.run(
                *(lambda params: params["x"], 3), executor=cm.Dask(given), on=messages_to(said)
            )
            assert report.evaluations == 3
            assert said == []
        assert client.status == "running"  # it is not ours to close
    assert "Failed" not in caplog.text


def test_what_is_no_cluster_gets_a_sentence():
    from distributed import LocalCluster

    no_addresses = ("foo", "", "tcp://", "tcp://:9", "http://h:9", "tcp://h:p/x", "tcp://h:99999")
    for given in (3, LocalCluster, *no_addresses):
        with pytest.raises(cm.ProblemError, match=r"cluster is .*: write the address"):
            cm.Dask(given)
    for address in ("h:9", "tcp://[::1]:9", "tls://h:9"):
        cm.Dask(address)
    with pytest.raises(cm.TaskError, match="cannot be reached"):
        quick(ONE).run(lambda params: 1.0, evaluations=1, executor=cm.Dask("tcp://127.0.0.1:9"))


def test_a_cluster_without_workers_says_so_and_waits(cluster, tmp_path, monkeypatch):
    """What a queue never starts is not heard of otherwise."""
    monkeypatch.setattr("calamint.run.execute.cluster._ALONE", 1.0)
    study, said = quick(ONE, f"sqlite:///{tmp_path / 'a.db'}"), []

    def on(event):
        if event.kind == "message":
            said.append(event.message)
            cluster.start_worker("here=1")

    study.run(lambda params: 1.0, evaluations=2, executor=cm.Dask(cluster.address), on=on)
    (sentence,) = said
    assert "has had no worker for 1 s" in sentence


def test_workers_that_offer_something_else_are_told_of_once(cluster, monkeypatch):
    """The name of a resource is another one, and no worker has both of two."""
    monkeypatch.setattr("calamint.run.execute.cluster._UNOFFERED", 1.0)
    cluster.start_worker("HERE=1 hall=1")
    cluster.start_worker("office=1")
    cluster.wait_for_workers(2)
    problem = ONE.changed(
        tasks={"run": cm.Task("f", runs_on=["here", ["hall", "office"]])},
        resources={"here": 1, "hall": 1, "office": 1},
    )
    study, said = quick(problem), []

    def on(event):
        if event.kind == "message":
            said.append(event.message)
            if len(said) == 2:
                cluster.start_worker("here=1")

    study.run(lambda params: 1.0, 2, executor=cm.Dask(cluster.address), on=on)
    offered = "they offer 'HERE', 'hall', 'office': start one with --resources"
    assert sorted(said) == [
        f"No worker offers 'hall' with 'office'; {offered} \"hall=1 office=1\".",
        f"No worker offers 'here'; {offered} \"here=1\".",
    ]


def test_a_worker_that_does_not_say_which_jobs_it_has_is_told_of_once(trio, monkeypatch):
    def collect(site):
        raise ValueError("out of order")

    monkeypatch.setattr("calamint.run.execute.remote.collect", collect)
    study, said = quick(ONE.changed(resources={"hall": 1}, tasks=IN_THE_HALL)), []
    executor = cm.Dask(trio.address)
    executor.has_spooled = True  # it is asked twice
    study.run(lambda params: 1.0, 3, executor=executor, on=messages_to(said))
    assert len(said) == 3
    assert all("does not say which jobs it has: ValueError: out of order." in each for each in said)


def test_two_runs_on_one_cluster_leave_each_other_alone(trio, tmp_path):
    path, log = tmp_path / "a.db", Log(tmp_path / "log")
    # Whoever hears first that a worker is free has it: the second goes on when the first is over.
    pids = [forked(run_on, trio.address, path, log, 30, 0.2)]
    while not log.lines():
        time.sleep(0.05)
    pids.append(forked(run_on, trio.address, path, log, 50, 0.2))
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    found = check_books(path)
    assert {row["attempts"] for row in found["jobs"]} == {1}
    assert len({row["owner"] for row in found["attempts"]}) == 2
    assert most_at_once(log, ("price", "weigh")) <= 3


def run_many_on(address, path, log):
    study = quick(ONE.changed(resources={"here": 8}), f"sqlite:///{path}", retries=1000)
    study.run(Noted("price", log, 0.15), evaluations=80, executor=cm.Dask(address))


def test_two_runs_on_one_cluster_do_not_overbook_it(cluster, tmp_path):
    """Each knows of the jobs of the other before it sends one."""
    cluster.start_worker("", 4)
    cluster.wait_for_workers(1)
    log = Log(tmp_path / "log")
    pids = [forked(run_many_on, cluster.address, tmp_path / "a.db", log) for _ in range(2)]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    assert len({row["owner"] for row in check_books(tmp_path / "a.db")["attempts"]}) == 2
    assert most_at_once(log, ("price",)) <= 5  # should both look in the same milliseconds


# -- faults ----------------------------------------------------------------------------------------


def run_on(address, path, log, evaluations, seconds):
    study = quick(decoupled(), f"sqlite:///{path}", pause=0.01, retries=1000)
    tasks = {task: Noted(task, log, seconds) for task in study.problem.tasks}
    executor = cm.Dask(address)
    report = study.run(tasks, evaluations=evaluations, executor=executor)
    assert (report.stopped, report.failed) == ("evaluations", 0)


def test_a_run_that_is_killed_finds_what_went_on_meanwhile(trio, tmp_path, monkeypatch):
    """One job ends after the run is gone, another still goes on: neither runs again, though the
    next run is in another folder."""
    path, log = tmp_path / "a.db", Log(tmp_path / "log")
    pid = forked(run_on, trio.address, path, log, 3, 4.0)
    until = time.monotonic() + 30
    while len(log.lines()) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    time.sleep(1.0)
    monkeypatch.chdir(tmp_path)
    messages = []
    study = quick(decoupled(), f"sqlite:///{path}", pause=0.01, retries=1000)
    assert [job.state for job in study.jobs] == ["running"] * 3
    tasks = {task: Noted(task, log, 4.0) for task in study.problem.tasks}
    on = messages_to(messages)
    study.run(tasks, evaluations=3, executor=cm.Dask(trio.address), on=on)
    assert [(job.state, job.attempts) for job in study.jobs] == [("done", 1)] * 3
    assert sum("goes on" in each for each in messages) == len(messages) == 3
    assert len([kind for kind, *_ in log.lines() if kind.startswith("begin")]) == 3
    # And those that have ended.
    pid = forked(run_on, trio.address, path, log, 6, 1.0)
    while len(log.lines()) < 9:
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    time.sleep(2.0)
    study.run(tasks, evaluations=6, executor=cm.Dask(trio.address), on=on)
    assert [(job.state, job.attempts) for job in study.jobs] == [("done", 1)] * 6
    check_books(path)


def test_nothing_is_started_before_earlier_results_are_there(trio, tmp_path, monkeypatch):
    """Workers do not say for a while what they have; then neither runs again."""
    path, log, failures = tmp_path / "a.db", Log(tmp_path / "log"), [OSError("no answer")] * 4
    pid = forked(run_on, trio.address, path, log, 3, 0.5)
    while len(log.lines()) < 3:
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    time.sleep(1.5)
    executor = cm.Dask(trio.address)
    broadcast = executor.cluster.broadcast

    def failing(function, *arguments, workers):
        if function is remote.collect and failures:
            raise failures.pop()
        return broadcast(function, *arguments, workers=workers)

    monkeypatch.setattr(executor.cluster, "broadcast", failing)
    study = quick(decoupled(), f"sqlite:///{path}", pause=0.01)
    tasks = {task: Noted(task, log) for task in study.problem.tasks}
    study.run(tasks, evaluations=3, executor=executor)
    assert failures == []
    assert [(job.state, job.attempts) for job in study.jobs] == [("done", 1)] * 3


def test_a_worker_that_is_killed_loses_its_job_only(trio, tmp_path):
    path, log = tmp_path / "a.db", Log(tmp_path / "log")
    study = quick(decoupled(), f"sqlite:///{path}", pause=0.01)
    tasks = {task: Noted(task, log, 0.5) for task in study.problem.tasks}
    killed = []

    def on(event):
        if event.kind == "started" and event.job.resources == ("office",) and not killed:
            time.sleep(0.2)
            trio.kill(trio.workers[0])
            killed.append(event.job.number)
            trio.start_worker("office=1")

    report = study.run(tasks, evaluations=9, executor=cm.Dask(trio.address), on=on)
    assert (report.evaluations, report.failed) == (9, 0)
    lost = [row for row in study.attempts(running=False) if row.outcome == "lost"]
    assert [row.job for row in lost] == killed
    assert study.jobs[killed[0]].attempts == 2
    check_books(path)


def test_a_worker_that_is_killed_with_many_jobs_does_not_stop_the_run(cluster, tmp_path):
    cluster.start_worker("", 6)
    cluster.wait_for_workers(1)
    study, log = quick(ONE.changed(resources={"here": 6}), pause=0.01), Log(tmp_path / "log")

    def on(event):
        if event.kind == "started" and event.job.number == 5:
            while len(log.lines()) < 6:
                time.sleep(0.02)
            cluster.kill(cluster.workers[0])
            cluster.start_worker("", 6)

    executor = cm.Dask(cluster.address)
    report = study.run(Noted("price", log, 0.8), evaluations=8, executor=executor, on=on)
    assert (report.evaluations, report.failed) == (8, 0)
    lost = [row for row in study.attempts(running=False) if row.outcome == "lost"]
    assert len(lost) == 6


def test_a_job_longer_than_the_wall_time_is_held_with_a_sentence(cluster, tmp_path):
    cluster.start_worker("here=1", 1, "--lifetime", "4s", "--nanny", "--lifetime-restart")
    cluster.wait_for_workers(1)
    study, messages = quick(ONE, pause=0.01, retries=1), []

    def on(event):
        if event.kind == "message":
            messages.append(event.message)
            if "held" in event.message:
                study.stop()

    def slow(params):
        time.sleep(60)

    study.run(slow, evaluations=1, executor=cm.Dask(cluster.address), on=on)
    (job,) = study.jobs
    assert (job.state, job.cause, job.attempts) == ("held", "lost", 2)
    assert "its worker ended after its lifetime of 4 s" in job.reason
    assert any("held" in each and "wall-time" in each for each in messages)


@pytest.mark.parametrize("faults", [9, pytest.param(90, marks=pytest.mark.slow)])
def test_workers_schedulers_and_runs_are_killed_at_random(tmp_path, faults, capsys):
    rng, each = random.Random(faults), 30
    counts, studies, finished = dict.fromkeys(("worker", "scheduler", "run"), 0), 0, False
    cluster = Cluster(tmp_path / "cluster")
    offers = ("office=1", "hall=1", "hall=1")
    with contextlib.closing(cluster):
        workers = [cluster.start_worker(each) for each in offers]
        pid = None
        while not (finished and sum(counts.values()) >= faults):
            if pid is None:
                studies += 1
                path, log = tmp_path / f"{studies}.db", Log(tmp_path / f"{studies}.log")
                pid, finished = forked(run_on, cluster.address, path, log, each, 0.2), False
            time.sleep(rng.uniform(0.3, 2.0))
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                assert status == 0
                check_all(path, log, each)
                pid, finished = None, True
                continue
            for index, worker in enumerate(workers):
                if worker.poll() is not None:  # it ends with its scheduler
                    workers[index] = cluster.start_worker(offers[index])
            if sum(counts.values()) >= faults:
                continue
            kind = min(counts, key=lambda kind: (counts[kind], rng.random()))
            if kind == "worker":
                cluster.kill(rng.choice(workers))
            elif kind == "scheduler":
                cluster.kill(cluster.scheduler)
                cluster.start_scheduler()
            else:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                pid = forked(run_on, cluster.address, path, log, each, 0.2)
            counts[kind] += 1
    with capsys.disabled():
        said = ", ".join(f"{count} {kind}s" for kind, count in counts.items())
        print(f"\n{said} killed in {studies} studies: nothing lost")


def check_all(path, log, evaluations):
    found = check_books(path)
    assert [row["state"] for row in found["jobs"]] == ["done"] * evaluations
    assert {row["cause"] for row in found["attempts"]} <= {None, "lost", "infrastructure"}
    ends = {"f": "end-price", "c": "end-weigh"}
    measured = [
        (ends[row["function"]], json.loads(row["params"])["x"]) for row in found["measurements"]
    ]
    assert len(measured) == len(set(measured)) == evaluations
    assert set(measured) <= {(kind, float(x)) for kind, x, _ in log.lines()}
