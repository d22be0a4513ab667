"""The live display: what a person sees in a terminal of any width, and without one."""

import io
import re

import pytest
from rich.console import Console
from tests.run.cases import quick, values_of

from calamint.decide import Recommendation, Suggestion
from calamint.run import Job, Progress
from calamint.show.live import Live, render


def job(number, task, resources, **changes):
    params = {"x": 0.123456789, "y": 0.5}
    made = Suggestion(number, task, params, resources, bits={"f": 0.75}, decision_seconds=0.125)
    return Job(number, task, params, resources, suggestion=made, **changes)


def progress(**changes):
    running = {job(7, "price", ("office",)): -90.0, job(8, "weigh", ("hall",), attempt=2): -1.0}
    given = {
        "name": "first",
        "running": running,
        "capacities": {"office": 1, "hall": 2, "cellar": 1},
        "ended": {"price": 4, "weigh": 3},
        "failed": 1,
        "failure": "ValueError: too hot",
        "other_jobs": {"hall": ["weigh 9"]},
        "budget": 60,
        "best": Recommendation({"x": 0.25, "y": 0.5}, 0.75, 0.987, True),
        "last": job(8, "weigh", ("hall",)),
        "seconds": 100.0,
        "decision_seconds": 12.0,
        "resumed": 0,
    }
    return Progress(**{**given, **changes})


def rendered(shown, width):
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(render(shown))
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_all_facts_are_there_at_any_width(width, monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    text = rendered(progress(), width)
    assert max(map(len, text.splitlines())) <= width
    words = re.sub(r"\s+", " ", text)
    for fact in (
        "price 7",
        "weigh 8",
        "1:30",
        "free",
        "Evaluations: 7 of 60 (price 4, weigh 3, 1 failed)",
        "Last failure: ValueError: too hot",
        "feasible with probability 0.987",
        "Last decision: weigh, 0.75 bits, 125 ms",
        "12% spent on deciding",
    ):
        assert fact in words
    if width >= 60:
        assert "weigh 9, in another process" in words
        assert "(attempt 2)" in words


def test_a_run_in_a_terminal_and_without_one():
    for terminal in (True, False):
        console = Console(width=100, file=io.StringIO(), force_terminal=terminal)
        study = quick()
        works = {
            task: (lambda params, task=task: values_of(task, params)) for task in ("price", "weigh")
        }
        with Live(console) as live:
            study.run(works, evaluations=6, watch=live)
        shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())
        if terminal:
            assert "Evaluations: 6 of 6" in shown
            assert "Best: x = " in shown
        else:
            assert "6/6 " in shown
            assert "┏" not in shown
