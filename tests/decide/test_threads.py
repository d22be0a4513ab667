"""Deciding on several threads: quicker with many measurements, and the same suggestions."""

import numpy as np
import pytest
from tests.decide.conftest import two_parameters

import calamint as cm
from calamint.decide import settings as settings_module
from calamint.threads import usable_cores


def suggestions(acquisition, threads, binary):
    """A full and a partial update of a problem with 40 measurements, which count as many."""
    constraints = ["c <= 1", "works"] if binary else ["c <= 1"]
    problem = two_parameters(constraints=constraints, resources={"machine": 2})
    optimizer = cm.Optimizer(problem, acquisition, threads=threads, rationality="batch")
    assert optimizer.settings.threads_for(40) == threads
    for x, y in np.random.default_rng(0).random((40, 2)):
        values = {"f": np.sin(5 * x) + y, "c": x + y}
        optimizer.add({"x": x, "y": y}, values | ({"works": x < 0.7} if binary else {}))
    jobs = [optimizer.ask(), optimizer.ask()]
    return [(job.params, job.bits, job.scores, job.update) for job in jobs]


@pytest.mark.parametrize(
    ("acquisition", "binary"), [("pesc", False), ("pesc", True), ("ev", False)]
)
def test_suggestions_do_not_depend_on_threads(acquisition, binary, monkeypatch):
    monkeypatch.setattr(settings_module, "_MANY", 30)
    one, two = (suggestions(acquisition, threads, binary) for threads in (1, 2))
    assert one == two
    assert [update for *_, update in one] == ["full", "partial"]


def test_few_measurements_are_decided_on_one_thread():
    assert cm.Settings(threads=8).threads_for(999) == 1
    assert cm.Settings(threads=8).threads_for(1000) == 8
    assert cm.Settings().threads_for(1000) == usable_cores()


@pytest.mark.parametrize("threads", [0, -1, 1.5, "two", True])
def test_impossible_numbers_of_threads_are_refused(threads):
    with pytest.raises(cm.ProblemError, match="threads is"):
        cm.Settings(threads=threads)


def test_threads_are_of_a_process_and_not_of_a_study(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    assert cm.Study(two_parameters(), storage, threads=3).settings.threads == 3
    assert cm.Study(two_parameters(), storage, threads=2).settings.threads == 2
    study = cm.Study.load(storage)
    assert study.settings.threads is None
    assert "threads" not in study.settings.to_json()
    assert cm.Study(two_parameters(), storage, threads=2).optimizer.settings.threads == 2
