"""A chemist's afternoon, through the command line alone."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SPEC = """
maximize = "yield"
constraints = ["clear"]

[space]
temperature = { real = [20, 120] }
minutes = { integer = [5, 60] }
solvent = { choice = ["water", "ethanol", "toluene"] }

[tasks.react]
measures = ["yield", "clear"]

[settings]
seed = 4
pause = 0
"""
EARLIER = """temperature;minutes;solvent;yield;clear;who
60,5;20;water;48,25;pass;Ada
95,0;45;ethanol;66,4;pass;Ada
118,0;55;toluene;71,9;fail;Eve
"""
BINARY = Path(sys.executable).with_name("calamint")


def reaction(params):
    """What nobody knows: turbid when it is hot, and impure when it is long."""
    heat, minutes = params["temperature"] / 100, params["minutes"] / 60
    best = {"water": 60.0, "ethanol": 80.0, "toluene": 75.0}[params["solvent"]]
    return {
        "yield": best - 60 * (heat - 0.9) ** 2 - 20 * (minutes - 0.7) ** 2,
        "clear": heat + 0.3 * minutes < 1.2,
        "purity": 99 - 9 * minutes,
    }


class Bench:
    """A folder with a study, and commands in it."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "reaction.toml").write_text(SPEC)
        (folder / "earlier.csv").write_text(EARLIER)

    def __call__(self, *words, code=0):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
        environment.pop("CALAMINT_STORAGE", None)
        done = subprocess.run(
            [BINARY, *map(str, words)],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == code, done.stderr
        assert all(len(line) <= 80 for line in done.stdout.splitlines() if line.startswith("│"))
        return done.stdout + done.stderr

    def json(self, *words):
        return json.loads(self(*words, "--format", "json"))

    def measure(self, job, *options):
        """Do an experiment, and tell what the study measures."""
        found = reaction(job["params"])
        measured = self.measured
        clear = "yes" if found["clear"] else "no"
        words = [f"{n}={clear if n == 'clear' else f'{found[n]:.2f}'}" for n in measured]
        return self("tell", job["job"], *words, *options)

    measured = ("yield", "clear")


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def asked(rows):
    """Jobs as `ask --format json` prints them, one or several."""
    return rows if isinstance(rows, list) else [rows]


def test_a_chemists_afternoon(bench):
    bench("init", "reaction.toml")
    assert "Rows added: 3" in bench("import", "earlier.csv", "--extra", "notes")
    assert "Rows added: 0, skipped" in bench("import", "earlier.csv", "--extra", "notes")

    # Three experiments at once; the second flask breaks.
    jobs = asked(bench.json("ask", "-n", 3))
    assert [job["job"] for job in jobs] == [0, 1, 2]
    bench.measure(jobs[0])
    bench("fail", 1, "the flask broke", "--cause", "infrastructure")
    bench.measure(jobs[2])
    again = bench.json("ask")
    assert again["job"] == 1  # it was not the input's fault
    bench.measure(again)

    # A result is mistyped: it is far outside what was seen, which is said; then put right.
    job = bench.json("ask")
    assert "is far outside what was seen" in bench("tell", 3, "yield=7540", "clear=yes")
    right = reaction(job["params"])
    clear = "yes" if right["clear"] else "no"
    said = bench("amend", 3, f"yield={right['yield']:.2f}", f"clear={clear}", "--reason", "a typo")
    assert f"yield = {right['yield']:.4g}"[:12] in said
    for _ in range(2):
        bench.measure(bench.json("ask"))

    # Half way: toluene is banned, it must not be so hot, and purity counts from now on.
    changed = SPEC.replace("[20, 120]", "[40, 110]").replace(', "toluene"', "")
    changed = changed.replace('["clear"]', '["clear", "purity >= 92"]')
    changed = changed.replace('"yield", "clear"]', '"yield", "clear", "purity"]')
    (bench.folder / "reaction.toml").write_text(changed)
    said = bench("change", "reaction.toml", "--yes", "--reason", "toluene is banned")
    assert "space.temperature.real is [40.0, 110.0], and was [20.0, 120.0]" in said
    assert "toluene is banned" in bench("changes")
    bench.measured = ("yield", "clear", "purity")
    for _ in range(4):
        job = bench.json("ask")
        assert 40 <= job["params"]["temperature"] <= 110
        assert job["params"]["solvent"] != "toluene"
        bench.measure(job)

    # The last two experiments are for what is recommended.
    for _ in range(2):
        bench.measure(bench.json("ask", "--confirm"))
    best = bench.json("recommend", "--observed")
    truth = reaction(best["params"])
    assert best["confirmed"]
    assert truth["clear"]
    assert truth["purity"] >= 92
    assert best["params"]["solvent"] != "toluene"
    assert bench.json("status")["evaluations"] == 12

    bench("export", "everything.csv")
    with (bench.folder / "everything.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12 + 3
    assert [row["who"] for row in rows[:3]] == ["Ada", "Ada", "Eve"]
    assert float(rows[0]["yield"]) == 48.25
    assert rows[0]["purity"] == ""
    for words in (["jobs"], ["history"], ["status"], ["recommend"]):
        bench(*words)
