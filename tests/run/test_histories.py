"""Decisions on recorded histories: the same as when they were recorded."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.run.histories.__main__ import environment
from tests.run.histories.scenarios import SCENARIOS, looked, tell, written

FOLDER = Path(__file__).parent / "histories"
# Between machines the last digits differ, and a sampler or an ascent that takes another branch ends
# elsewhere: then the histories say nothing.
TOLERANCE = 1e-6


def compare(new, old, where):
    """Numbers within the tolerance, everything else exactly."""
    if isinstance(old, dict):
        assert list(new) == list(old), where
        for key in old:
            compare(new[key], old[key], f"{where}.{key}")
    elif isinstance(old, float) and not isinstance(old, bool):
        assert np.isclose(new, old, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True), (
            f"{where} is {new!r}, and was {old!r}"
        )
    else:
        assert new == old, where


def replay(name):
    """Fold the events over a study, comparing each decision with the one that was recorded."""
    content = json.loads((FOLDER / f"{name}.json").read_text())
    scenario = SCENARIOS[name]()
    study = scenario.study()
    running = {}
    for index, event in enumerate(content["events"]):
        where = f"{name}, event {index}"
        study.clock.move(event["at"])
        if event["kind"] == "script":
            scenario.script[event["after"]](study)
        elif event["kind"] == "asked":
            job = study.ask()
            assert job is not None, where
            running[job.number, job.attempt] = job
            compare(
                written(job), {k: v for k, v in event.items() if k not in ("kind", "at")}, where
            )
        elif event["kind"] == "ended":
            job = running.pop((event["job"], event["attempt"]))
            tell(study, job, event["values"], event["seconds"])
        else:
            compare(
                looked(study), {k: v for k, v in event.items() if k not in ("kind", "at")}, where
            )


@pytest.mark.parametrize("name", SCENARIOS)
def test_decisions_are_those_that_were_recorded(name):
    recorded = json.loads((FOLDER / f"{name}.json").read_text())["environment"]
    if recorded != environment():
        pytest.skip(f"recorded with {recorded}, whose last digits are others")
    replay(name)
