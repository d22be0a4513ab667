"""The command line: what the documentation shows, formats, exit codes and mistakes."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import calamint as cm
from calamint.show.cli import main as command_line

ROOT = Path(__file__).parents[2]
SPEC = """
minimize = "cost"
constraints = ["load <= 1", "works"]
[space]
x = { real = [0.0, 1.0] }
kind = { choice = ["a", "b"] }
n = { integer = [1, 9] }
[tasks.measure]
measures = ["cost", "load", "works"]
"""


def environment():
    tools = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}


RUNS_ON = "# runs until Ctrl-C\n"


def followed(page, folder, replaced=()):
    """What the commands of a page print. Files are blocks that begin with their name; commands run
    in order, in one folder, those that run until Ctrl-C beside all that follow; words of the page
    are replaced by others."""
    text = (ROOT / "docs" / page).read_text()
    for word, other in dict(replaced).items():
        assert word in text
        text = text.replace(word, other)
    for block in re.findall(r"```(?:toml|py)\n# (\S+)\n(.*?)```", text, flags=re.DOTALL):
        (folder / block[0]).write_text(block[1])
    options = {"cwd": folder, "env": environment(), "text": True}
    shown, running = "", []
    try:
        for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL):
            if block.startswith(RUNS_ON):
                words = ["bash", "-c", f"exec {block.removeprefix(RUNS_ON)}"]
                running.append(subprocess.Popen(words, stdout=subprocess.PIPE, **options))
                shown += running[-1].stdout.readline()  # it has started
                continue
            done = subprocess.run(["bash", "-e", "-c", block], capture_output=True, **options)
            assert done.returncode == 0, done.stderr
            shown += done.stdout
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGINT)
            shown += process.communicate(timeout=30)[0]
    assert {process.returncode for process in running} <= {0, 130}
    return shown


def test_the_command_line_works_as_its_page_says(tmp_path):
    shown = followed("command-line.md", tmp_path)
    assert "Study 'study' is ready in sqlite:///by-hand.db" in shown
    assert "feasible with probability" in shown
    assert "Job 3 waits to be asked for" in shown
    assert "goes on after 12 evaluations" in shown
    assert "12/12" in shown
    assert "14/14" in shown
    assert (tmp_path / "programs.db.jobs/study/job-0-1/stdout.txt").exists()


def test_a_study_is_corrected_and_changed_as_its_page_says(tmp_path):
    shown = followed("changing.md", tmp_path)
    assert "Job 0 is amended: yield = 75.4, purity = 93 ± 1, clear = passed." in shown
    assert "The problem is changed." in shown
    assert "toluene is banned" in shown
    assert "a comma is refused" in shown
    assert "all is taken" in shown
    assert "nothing starts" in shown
    study = cm.Study.load(f"sqlite:///{tmp_path}/by-hand.db")
    assert [job.state for job in study.jobs] == [
        *("done", "withdrawn", "done", "done", "done", "waiting")
    ]
    assert study.history[0].values["yield"] == 75.4
    assert study.history[1].params["temperature"] == 81.7
    assert study.history[-1].notes == {"who": "Ada"}
    assert len(study.history) == 6  # the same rows were not added twice
    assert len(study.changes) == 2
    assert study.paused == {"task": [], "resource": []}
    assert (tmp_path / "everything.csv").read_text().count("\n") == 7


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run a command here; returns (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CALAMINT_STORAGE", raising=False)
    (tmp_path / "problem.toml").write_text(SPEC)

    def run(*words, **options):
        monkeypatch.setattr(sys, "argv", ["calamint", *map(str, words)])
        out, err = io.StringIO(), io.StringIO()
        given = io.StringIO(options.get("stdin", ""))
        given.isatty = lambda: options.get("tty", False)
        monkeypatch.setattr(sys, "stdin", given)
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        code = 0
        try:
            command_line.main()
        except SystemExit as stop:
            code = stop.code or 0
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        return code, out.getvalue(), err.getvalue()

    return run


def test_init_takes_the_settings(call):
    words = ["--rationality", "batch", "--initial", 2, "--fantasies", 3, "--retries", 1, "--couple"]
    assert call("init", "problem.toml", *words)[0] == 0
    settings = cm.Study.load("sqlite:///calamint.db").settings
    assert (settings.rationality, settings.initial, settings.fantasies) == ("batch", 2, 3)
    assert (settings.retries, settings.couple) == (1, True)
    assert call("init", "problem.toml", "--rationality", "never")[0] == 1


def test_every_setting_can_stand_in_the_spec_or_be_set(call, tmp_path):
    """The spec first, then --set, then options."""
    with (tmp_path / "problem.toml").open("a") as spec:
        spec.write(
            "[settings]\nseed = 7\ndelta = 0.1\nrationality = inf\nacquisition = 'pesc'\n"
            "[settings.model]\nkernel = 'se'\ntransform = { cost = 'log' }\n"
        )
    words = ["--set", "acquisition.solutions=20", "--set", "model.samples=3", "--set", "seed=9"]
    assert call("init", "problem.toml", *words, "--seed", 8)[0] == 0
    settings = cm.Study.load("sqlite:///calamint.db").settings
    assert (settings.seed, settings.delta, settings.rationality) == (8, 0.1, float("inf"))
    assert settings.acquisition.solutions == 20
    assert settings.model == cm.Model("se", samples=3, transform={"cost": "log"})
    assert cm.Problem.from_toml((tmp_path / "problem.toml").read_text())  # it ignores them


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("modl.samples=3", "settings.modl is not a setting: did you mean 'model'?"),
        ("model.smples=3", "settings.model.smples is not a setting: did you mean 'samples'?"),
        ("acquisition.sites=papr", "did you mean 'paper'?"),
        ("acquisition.name=psc", "did you mean 'pesc'?"),
        ("acquisition.cells=3", "settings.acquisition.cells is not a setting"),
        ("seed.x=3", "'seed' has no settings of its own"),
        ("model=3", "settings.model is 3"),
        ("delta", "is not name=value"),
    ],
)
def test_a_setting_that_is_none_is_named(call, tmp_path, word, error):
    with (tmp_path / "problem.toml").open("a") as spec:
        spec.write("[settings]\nseed = 7\nacquisition = 'pesc'\n")
    code, _, err = call("init", "problem.toml", "--set", word)
    assert code == 1
    assert error in err


def test_a_problem_is_changed_shown_and_changed_back(call, tmp_path):
    call("init", "problem.toml", "--seed", 2)
    call("ask")
    call("tell", 0, "cost=1", "load=0.5", "works=yes", "--at", "x=0.9")
    narrow = SPEC.replace("[0.0, 1.0]", "[0.0, 0.5]").replace("load <= 1", "load <= 2")
    (tmp_path / "narrow.toml").write_text(narrow)
    code, out, err = call("change", "narrow.toml")
    assert (code, "write --yes" in err) == (1, True)
    assert "space.x.real is [0.0, 0.5], and was [0.0, 1.0]" in out
    assert call("change", "narrow.toml", tty=True, stdin="n\n")[0] == 1
    assert json.loads(call("changes", "-f", "json")[1]) == []
    call("ask")
    code, out, _ = call("change", "narrow.toml", "--yes", "--reason", "the pump is weak")
    assert (code, "The problem is changed." in out) == (0, True)
    (row,) = json.loads(call("changes", "-f", "json")[1])
    assert (row["reason"], "load <= 2" in row["what"]) == ("the pump is weak", True)
    assert "Nothing differs" in call("change", "narrow.toml")[1]
    assert call("change", "--undo", "--yes")[0] == 0
    assert "Nothing differs" in call("change", "problem.toml")[1]
    assert call("change")[0] == 1
    assert len(json.loads(call("history", "-f", "json")[1])) == 1


def test_a_job_out_of_the_new_bounds_is_named(call, tmp_path):
    call("init", "problem.toml")
    call("enqueue", "measure", "x=0.9", "kind=a", "n=3")
    (tmp_path / "narrow.toml").write_text(SPEC.replace("[0.0, 1.0]", "[0.0, 0.5]"))
    assert "Job 0 is waiting out of the new bounds" in call("change", "narrow.toml", "--yes")[1]


def test_what_is_paused_is_shown_and_does_not_start(call):
    call("init", "problem.toml")
    assert call("pause", "--task", "measure", "--reason", "lunch")[1] == "measure is paused.\n"
    code, _, err = call("ask")
    assert (code, "task measure is paused" in err) == (3, True)
    assert json.loads(call("status", "-f", "json")[1])["paused"] == ["measure"]
    assert call("resume", "--task", "measure")[0] == 0
    assert call("ask")[0] == 0
    assert call("pause", "--task", "mesure")[0] == 1


def test_results_are_put_right(call):
    assert call("init", "problem.toml", "--seed", 2)[0] == 0
    call("ask")
    code, _, err = call("tell", 0, "cost=96,3")
    assert (code, "write cost=96.3, or" in err, "cost=96+-3" in err) == (1, True, True)
    told = call("tell", 0, "cost=96+-3", "works=yes", "--at", "x=0.25", "--more")[1]
    assert told == "Job 0 is told: cost = 96 ± 3, works = passed, more to come.\n"
    assert "load = 0.5" in call("complete", 0, "load=0.5")[1]
    amended = call("amend", 0, "cost=9.6", "works=fail", "--reason", "a misplaced point")[1]
    assert amended == "Job 0 is amended: cost = 9.6, load = 0.5, works = failed.\n"
    assert call("amend", 0, "--at", "x=0.5")[0] == 0
    (row,) = json.loads(call("history", "-f", "json")[1])
    assert (row["x"], row["cost"], row["works"]) == (0.5, 9.6, 0.0)
    assert call("withdraw", 0, "the flask was not clean")[0] == 0
    assert call("history", "-f", "json")[1] == "[]\n"
    assert "is partial, as first told: cost = 96 ± 3" in call("restore", 0)[1]
    assert "never corrected" in call("restore", 0)[2]


def test_several_jobs_and_what_is_in_the_way(call):
    call("init", "problem.toml", "--seed", 2)
    rows = list(csv.DictReader(io.StringIO(call("ask", "-n", 3, "--format", "csv")[1])))
    assert [row["job"] for row in rows] == ["0", "1", "2"]
    assert set(rows[0]) == {"job", "task", "x", "kind", "n"}
    code, _, err = call("ask")
    assert code == 3
    assert (
        err == "Nothing can start now: local is taken by job 0. Tell, fail or cancel a job first.\n"
    )
    for number in range(3):
        call("tell", number, f"cost={number}", "load=1", "works=yes")
    assert len(json.loads(call("ask", "-n", 2, "-f", "json")[1])) == 2
    words = [f"{name}={rows[0][name]}" for name in ("x", "kind", "n")]
    assert "feasible with probability" in call("predict", *words)[1]
    found = json.loads(call("predict", *words, "-f", "json")[1])
    assert set(found["functions"]) == {"cost", "load", "works"}
    assert 0 <= found["probability"] <= 1


def test_a_program_that_is_not_there_leaves_no_study_behind(call, tmp_path):
    (tmp_path / "p.toml").write_text(
        'minimize = "f"\n[space]\nx = { real = [0.0, 1.0] }\n'
        '[tasks.t]\nmeasures = ["f"]\ncommand = ["no-such-program"]\n'
    )
    code, _, err = call("run", "p.toml", "--evaluations", 1)
    assert (code, "'no-such-program' is not found" in err) == (1, True)
    assert not (tmp_path / "calamint.db").exists()


def test_a_value_far_outside_is_noticed(call):
    call("init", "problem.toml", "--seed", 2)
    for number in range(6):
        call("ask")
        call("tell", number, f"cost={60 + 4 * number}", "load=1", "works=yes")
    call("ask")
    values = ("cost=7.54", "load=1", "works=yes")
    code, out, _ = call("tell", 6, *values, stdin="n\n", tty=True)
    assert (code, "Tell it? [y/N]" in out, "Nothing was told." in out) == (1, True, True)
    assert call("tell", 6, *values, "--yes", tty=True)[0] == 0
    call("withdraw", 6, "to tell it again")
    call("ask")
    code, out, err = call("tell", 7, *values)
    assert (code, out.startswith("Job 7 is told: cost = 7.54")) == (0, True)
    assert "cost = 7.54 is far outside what was seen (60 to 80)" in err
    assert "calamint amend 7" in err


def test_a_whole_optimisation_with_formats(call, tmp_path):
    assert call("init", "problem.toml", "--seed", 2)[0] == 0
    assert "was there already, with 0 evaluations" in call("init", "problem.toml")[1]
    asked = json.loads(call("ask", "--format", "json")[1])
    assert asked["task"] == "measure"
    assert set(asked["params"]) == {"x", "kind", "n"}
    code, _, err = call("ask")
    assert (code, "Nothing can start now" in err) == (3, True)
    assert call("tell", asked["job"], "cost=1.5", "load=0.5+-0.1", "works=true")[0] == 0
    assert call("tell", asked["job"], "cost=1.5")[0] == 1
    second = json.loads(call("ask", "-f", "json")[1])["job"]
    assert (
        call("tell", second, "--json", "-", stdin='{"cost": 2, "load": 3, "works": false}')[0] == 0
    )
    rows = list(csv.DictReader(io.StringIO(call("history", "--format", "csv")[1])))
    assert [row["cost"] for row in rows] == ["1.5", "2.0"]
    third = json.loads(call("ask", "-f", "json")[1])["job"]
    assert call("fail", third, "it burnt")[0] == 0
    failed = json.loads(call("jobs", "--state", "failed", "-f", "json")[1])
    assert [(job["job"], job["reason"]) for job in failed] == [(third, "it burnt")]
    assert "it burnt" in call("jobs")[1]
    status = json.loads(call("status", "-f", "json")[1])
    assert status["evaluations"] == 3
    assert status["failed"] == 1
    best = json.loads(call("recommend", "-f", "json", "--delta", "0.5")[1])
    assert set(best) == {
        "params",
        "objective",
        "probability",
        "confident",
        "interval",
        "confirmed",
    }
    assert "objective" in call("recommend", "--observed")[1]
    gains = json.loads(call("gains", "x=0.5", "kind=b", "n=3", "-f", "json")[1])
    assert [row["function"] for row in gains] == [
        "cost",
        "load",
        "works",
        "measure_works",  # one job failed
    ]
    assert call("enqueue", "measure", "x=0.5", "kind=b", "n=3")[0] == 0
    queued = json.loads(call("ask", "-f", "json")[1])
    assert queued["params"] == {"x": 0.5, "kind": "b", "n": 3}
    assert call("cancel", queued["job"])[0] == 0
    assert call("export", "m.csv")[0] == 0
    assert call("export", "m.json")[0] == 0
    assert "Rows added: 0, skipped as the study has them already: 2" in call("import", "m.csv")[1]
    assert "Rows added: 2" in call("import", "m.csv", "--again")[1]
    assert len(json.loads((tmp_path / "m.json").read_text())) == 2
    assert call("doctor", "--storage", "sqlite:///calamint.db")[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["status"], 4, "there is no such file"),
        (["init", "nothing.toml"], 1, "cannot be read"),
        (["init", "nothing"], 1, "is not a spec ending in .toml"),
        (["init", "json:loads"], 1, "name a cm.Problem"),
        (["init", "no_module:problem"], 1, "cannot be imported"),
        (["init", "problem.toml", "--storage", "a.db"], 4, "sqlite:///a.db"),
        (["init", "problem.toml", "--acquisition", "psec"], 1, "did you mean 'pesc'"),
        (["status", "--storage", "sqlite:///none/a.db"], 4, "there is no such file"),
        (["init", "problem.toml", "-s", "sqlite:///none/a.db"], 4, "does its folder exist"),
        (["run", "problem.toml"], 1, "no budget is given"),
        (["run", "problem.toml", "--evaluations", "3"], 1, "tasks['measure'] is None"),
        (["tell", "0", "cost"], 1, "is not name=value"),
        (["tell", "0", "--json", "{"], 1, "not JSON"),
        (["export", "m.txt"], 4, "no such file"),
        (["nonsense"], 2, "No such command"),
        (["doctor", "--storage", "sqlite:///none/a.db"], 1, ""),
    ],
)
def test_mistakes_are_one_sentence_and_an_exit_code(call, words, code, sentence):
    found, out, err = call(*words)
    assert found == code
    assert sentence in err
    assert "Traceback" not in err + out


def test_storages_that_cannot_be_used(call, tmp_path):
    (tmp_path / "bad.db").write_text("no database at all " * 100)
    for command in ("status", "ask", "recommend", "jobs"):
        code, _, err = call(command, "--storage", "sqlite:///bad.db")
        assert (code, "not a SQLite database" in err) == (4, True)


def test_every_command_has_help_with_an_example():
    runner = CliRunner()
    commands = [
        info.name or info.callback.__name__ for info in command_line.app.registered_commands
    ]
    wanted = ("init", "run", "status", "ask", "tell", "fail", "recommend", "jobs", "history")
    assert {*wanted, "export", "gains", "doctor"} <= {name.rstrip("_") for name in commands}
    for name in commands:
        shown = runner.invoke(command_line.app, [name.rstrip("_"), "--help"])
        assert shown.exit_code == 0
        assert "Example: calamint" in re.sub(r"\s+", " ", shown.output)


def test_an_interrupted_run_says_so_and_can_go_on(tmp_path):
    (tmp_path / "problem.toml").write_text('minimize = "f"\n[space]\nx = { real = [0.0, 1.0] }\n')
    (tmp_path / "work.py").write_text(
        "import time\n\n\ndef f(params):\n    time.sleep(0.3)\n    return params['x']\n\n\n"
        "tasks = {'evaluate': f}\n"
    )
    words = ["calamint", "run", "problem.toml", "--tasks", "work.py:tasks", "--evaluations"]
    process = subprocess.Popen(
        [*words, "500"], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().startswith("1/500")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "it was interrupted" in out
    count = len(cm.Study.load(f"sqlite:///{tmp_path / 'calamint.db'}").history)
    done = subprocess.run(
        [*words, str(count + 1)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"goes on after {count} evaluations" in done.stdout
