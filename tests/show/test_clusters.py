"""Machines beyond one from the command line: workers on a shared storage, and clusters with a
queue. Where SLURM would be, there is a stand-in that runs what is submitted on this machine."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from tests.run.cases import check_books
from tests.run.servers import new_database
from tests.show.test_command_line import environment, followed
from typer.testing import CliRunner

import calamint as cm
from calamint.show.cli.main import app

SPEC = """
minimize = "loss"
constraints = ["load <= 1"]
[space]
x = { real = [0, 1] }
y = { real = [0, 1] }
[tasks.estimate]
measures = ["loss"]
runs_on = ["office"]
[tasks.weigh]
measures = ["load"]
runs_on = ["hall"]
[resources]
office = 1
hall = 2
[settings]
acquisition = "random"
pause = 0.01
retries = 50
"""
OFFICE = """
import time

def estimate(params):
    time.sleep(0.1)
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.9) ** 2

tasks = {"estimate": estimate}
"""
HALL = """
import time

def weigh(params):
    time.sleep(0.1)
    return params["x"] + params["y"]

tasks = {"weigh": weigh}
"""
STAND_IN = {
    # It keeps the script, as SLURM does: whoever submits it deletes it.
    "sbatch": 'cp "$1" "job.$$.sh"\n'
    'setsid bash "job.$$.sh" > "job.$$.log" 2>&1 < /dev/null &\necho "Submitted batch job $!"',
    "scancel": 'for job in "$@"; do kill -9 -- "-$job"; done',
}


def calamint(*words, cwd, **options):
    words = [sys.executable, "-m", "calamint", *words]
    return subprocess.Popen(
        words, cwd=cwd, env=environment(), stdout=-1, stderr=subprocess.STDOUT, text=True, **options
    )


def done(*words, cwd):
    process = calamint(*words, cwd=cwd)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    return out


@pytest.fixture
def with_slurm(tmp_path, monkeypatch):
    """A machine that may submit jobs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in STAND_IN.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__DASHBOARD__ENABLED", "False")
    return folder


@pytest.fixture
def study(tmp_path):
    """The URL of a study on a server, and a folder with what runs its tasks."""
    url = new_database()
    for name, text in (("problem.toml", SPEC), ("office.py", OFFICE), ("hall.py", HALL)):
        (tmp_path / name).write_text(text)
    done("init", "problem.toml", "-s", url, cwd=tmp_path)
    return url, tmp_path


def test_workers_on_two_machines_share_a_study(study):
    """Each knows its own tasks only; one is killed, and another takes its place."""
    url, folder = study
    evaluations, watched = 80, cm.Study.load(url)

    def worker(resource, file):
        words = ("worker", "--resource", resource, "--tasks", f"{file}.py:tasks", "-s", url)
        return calamint(*words, "--evaluations", str(evaluations), cwd=folder)

    office, hall = worker("office", "office"), worker("hall=2", "hall")
    while watched.replica().ended["weigh"] < 3:
        time.sleep(0.05)
    hall.send_signal(signal.SIGKILL)
    hall.communicate()
    hall = worker("hall=2", "hall")
    for process in (office, hall):
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0, out
        assert "all evaluations were made" in out
    found = check_books(url)
    ended = [row for row in found["jobs"] if row["state"] == "done"]
    assert len(ended) >= evaluations
    assert {row["task"] for row in ended} == {"estimate", "weigh"}
    owners = {row["owner"].split("/")[1] for row in found["attempts"]}
    assert len(owners) == 3
    for row in found["attempts"]:
        assert len(json.loads(row["resources"])) == 1


def test_a_worker_without_a_budget_goes_on_until_it_is_interrupted(study):
    url, folder = study
    process = calamint(
        "worker", "--resource", "office", "--tasks", "office.py:tasks", "-s", url, cwd=folder
    )
    lines = [process.stdout.readline() for _ in range(4)]
    assert lines[0].startswith("Taking jobs of study 'study' on office")
    assert all("estimate on office" in line for line in lines[1:])
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "it was interrupted" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--resource", "ofice"), "resource is 'ofice': did you mean 'office'?"),
        (("--resource", "hall=0"), "hall=0: write how many jobs at a time, such as hall=1"),
        (("--resource", "hall"), r"tasks['weigh'] is None: write a function"),
    ],
)
def test_workers_that_cannot_work_get_a_sentence(study, words, sentence):
    url, folder = study
    process = calamint("worker", *words, "-s", url, cwd=folder)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert sentence in out
    assert "Taking jobs" not in out


# -- job scripts -----------------------------------------------------------------------------------

DIRECTIVES = {
    "slurm": (
        "#SBATCH -t 04:00:00",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH -A me",
        "#SBATCH -p big",
    ),
    "pbs": ("#PBS -l walltime=04:00:00", "ncpus=4", "#PBS -A me", "#PBS -q big"),
    "sge": ("#$ -l h_rt=04:00:00", "#$ -P me", "#$ -q big"),
    "lsf": ("#BSUB -W 04:00", "#BSUB -n 4", '#BSUB -P "me"', "#BSUB -q big"),
}


@pytest.mark.parametrize("system", DIRECTIVES)
def test_job_scripts(study, system):
    url, folder = study
    words = ("--cpus", "4", "--time", "4:00:00", "--memory", "8GB", "--queue", "big")
    more = ("--account", "me", "--resource", "hall=2", "--prologue", "module load python")
    said = done("cluster", system, *words, *more, "-s", url, cwd=folder)
    assert f"Written: start_{system}.py" in said
    script = subprocess.run(
        [sys.executable, f"start_{system}.py", "--script"],
        cwd=folder, env=environment(), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for directive in DIRECTIVES[system]:
        assert directive in script
    lines = script.splitlines()
    (worker,) = [line for line in lines if "dask_worker" in line]
    assert lines.index("module load python") < lines.index(worker)
    assert "--nthreads 4" in worker
    assert "--resources 'hall=2'" in worker
    lifetime, stagger = (
        int(re.search(rf"--{option} (\d+)s", worker)[1])
        for option in ("lifetime", "lifetime-stagger")
    )
    assert 3.8 * 3600 < lifetime + stagger < 4 * 3600  # it ends before it is ended
    # What is there is not overwritten.
    process = calamint("cluster", system, *words, "-s", url, cwd=folder)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "exists" in out


@pytest.mark.parametrize("time", ["4h", "0:01:00", "1:75"])
def test_wall_times_that_are_none_get_a_sentence(study, time):
    url, folder = study
    process = calamint("cluster", "slurm", "--cpus", "1", "--time", time, "-s", url, cwd=folder)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "write" in out
    assert not (folder / "start_slurm.py").exists()


def test_a_script_has_the_words_that_it_was_given(tmp_path):
    """Whatever is in them: no word of a person is a word of Python."""
    (tmp_path / "problem.toml").write_text(SPEC)
    (tmp_path / "work.py").write_text("def main():\n    pass\n")
    name, url = 'my \N{CHERRIES} \\ """ study', f"sqlite:///{tmp_path}/\N{CHERRIES}.db"
    done("init", "problem.toml", "-s", url, "--name", name, cwd=tmp_path)
    words = ("--cpus", "1", "--time", "1:00:00", "--queue", "b\N{LATIN SMALL LETTER O WITH STROKE}")
    more = ("--tasks", "work.py:main", "-o", 'start """.py', "-s", url)
    done("cluster", "slurm", *words, *more, cwd=tmp_path)
    script = (tmp_path / 'start """.py').read_text("utf-8")
    assert name == ast.literal_eval(script[script.index("STUDY = ") + 8 :].partition("\n")[0])
    assert "\\u" not in script
    shown = subprocess.run(
        [sys.executable, 'start """.py', "--script"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "#SBATCH -p b\N{LATIN SMALL LETTER O WITH STROKE}" in shown


@pytest.mark.parametrize(
    ("system", "words", "sentence"),
    [
        ("slurm", ("--cpus", "0"), "cpus is 0: write a whole number of at least 1"),
        ("slurm", ("--workers", "0"), "workers is 0: write"),
        ("slurm", ("--evaluations", "-3"), "evaluations is -3: write"),
        ("slurm", ("--memory", "foo"), "memory is 'foo': write a number with its unit"),
        ("slurm", ("--memory", "0GB"), "memory is '0GB': write a number with its unit"),
        ("slurm", ("--queue", "a\nrm -rf b"), r"queue is 'a\nrm -rf b': write one line"),
        ("slurm", ("--queue", ""), "queue is '': write one line"),
        ("pbs", ("--account", "a\x1bb"), r"account is 'a\x1bb': write one line"),
        ("sge", ("--directive", "-l\na"), r"directive is '-l\na': write one line"),
        ("slurm", ("--prologue", "a\rb"), r"prologue is 'a\rb': write one line"),
        ("lsf", ("--account", 'a"b'), "account is 'a\"b': write it without quotes"),
        ("slurm", ("--time", "99999999:00:00"), "time is '99999999:00:00': write hours"),
        ("lsf", ("--time", "0:01:59"), "time is '0:01:59': write at least 120 seconds"),
        ("slurm", ("--resource", "hall=\N{SUPERSCRIPT TWO}"), "write how many jobs at a time"),
        ("slurm", ("--resource", "hall=" + 5000 * "9"), "write how many jobs at a time"),
        ("slurm", ("--resource", ""), "resource is '': write its name, such as gpu"),
        ("slurm", ("-o", "no/such/folder/a.py"), "cannot be written: No such file or directory"),
    ],
)
def test_scripts_that_could_not_run_get_a_sentence(tmp_path, system, words, sentence):
    url = f"sqlite:///{tmp_path}/a.db"
    cm.Study(cm.Problem.from_toml(SPEC), url)
    told = CliRunner().invoke(
        app, ["cluster", system, "--cpus", "1", "--time", "1:00:00", "-s", url, *words]
    )
    assert isinstance(told.exception, cm.CalamintError)
    assert sentence in str(told.exception)
    assert not list(tmp_path.glob("*.py"))


def test_lsf_ends_no_worker(tmp_path):
    """It has no seconds, and its workers count by what it has."""
    (tmp_path / "problem.toml").write_text(SPEC)
    url = f"sqlite:///{tmp_path}/a.db"
    done("init", "problem.toml", "-s", url, cwd=tmp_path)
    done("cluster", "lsf", "--cpus", "1", "--time", "0:02:59", "-s", url, cwd=tmp_path)
    script = (tmp_path / "start_lsf.py").read_text()
    assert 'walltime="00:02"' in script
    lifetime, stagger = map(int, re.findall(r'"(\d+)s"', script))
    assert lifetime + stagger < 120


@pytest.mark.parametrize("tasks", ["sub/work.py:tasks", "work.py", "work.py:if", "work:a b", ":x"])
def test_tasks_that_cannot_be_imported_get_a_sentence(study, tasks):
    url, folder = study
    words = ("--cpus", "1", "--time", "1:00:00", "--tasks", tasks)
    process = calamint("cluster", "slurm", *words, "-s", url, cwd=folder)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"tasks is {tasks!r}: write module:name" in out
    assert not (folder / "start_slurm.py").exists()


def test_a_script_says_what_is_wrong_and_leaves_no_cluster(study, with_slurm):
    url, folder = study
    done("cluster", "slurm", "--cpus", "1", "--time", "1:00:00", "-s", url, cwd=folder)
    finished = subprocess.run(
        [sys.executable, "start_slurm.py"],
        cwd=folder, env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert finished.returncode == 1
    assert "error: tasks['estimate'] is None: write a function" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_workers_that_reach_their_wall_time_are_replaced(study, with_slurm):
    """Workers of a few seconds run a study of many."""
    url, folder = study
    (folder / "work.py").write_text(OFFICE + HALL.replace("tasks = {", "tasks |= {"))
    words = ("--cpus", "2", "--time", "4:00:00", "--memory", "500MB", "--workers", "2")
    more = ("--tasks", "work.py:tasks", "--evaluations", "60", "-s", url)
    done("cluster", "slurm", *words, *more, cwd=folder)
    path = folder / "start_slurm.py"
    script = path.read_text()
    assert "from work import tasks as task_functions" in script
    path.write_text(re.sub(r'"\d+s", "--lifetime-stagger", "\d+s"', '"4s"', script))
    finished = subprocess.run(
        [sys.executable, path.name], cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    assert "60 evaluations" in finished.stdout
    check_books(url)
    assert len(list(folder.glob("job.*.log"))) > 2


def test_the_page_about_clusters_works_as_it_says(tmp_path, with_slurm):
    url = new_database()
    replaced = {"postgresql://me@server/studies": url}
    shown = followed("clusters.md", tmp_path, replaced)
    assert shown.count("all evaluations were made") == 4
    assert "#SBATCH -t 04:00:00" in shown
    study = cm.Study.load(url)
    assert sum(study.replica().ended.values()) >= 36
    assert study.recommend(kind="observed").confirmed
    found = check_books(url)
    resources = [json.loads(row["resources"]) for row in found["attempts"]]
    assert {name for each in resources for name in each} == {"furnace", "balance"}
    # What the worker by itself did needs the balance only.
    last = found["attempts"][-1]["owner"]
    own = [row for row in found["attempts"] if row["owner"] == last]
    assert all(json.loads(row["resources"]) == ["balance"] for row in own)
