"""Whatever the description allows, and what it does not: no request is answered by a failure."""

import contextlib

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from tests.run.cases import quick
from tests.run.served import serving

from calamint.run import create_token
from calamint.show.serve.guard import Limits


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    study = quick(storage=f"sqlite:///{tmp_path_factory.mktemp('schema') / 'a.db'}")
    for _ in range(4):
        job = study.ask()
        study.tell(job, dict.fromkeys(study.problem.tasks[job.task].measures, 0.5))
    token = create_token(study.database, "anybody", "manage")
    with serving(study.database, limits=Limits(rate=1e6)) as server:
        found = schemathesis.openapi.from_url(f"{server}/api/openapi.json")
        found.token = token
        yield found


def shortened(case):
    """The same request, without waiting for an hour, and of the study that there is."""
    for part in (case.body, case.query):
        for word, most in (("wait", 0.01), ("n", 3)):
            if isinstance(part, dict) and isinstance(part.get(word), int | float):
                part[word] = min(part[word], most)
    if "study" in (case.path_parameters or {}):
        case.path_parameters["study"] = 1
    return case


def check(schema, mode, examples):
    """Requests of a kind to every operation; which were answered, and how."""
    every = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seen = set()

    def one(case):
        answer = shortened(case).call(headers={"Authorization": f"Bearer {schema.token}"})
        assert answer.status_code < 500, (case.as_curl_command(), answer.text)
        if answer.status_code >= 400:
            assert set(answer.json()) == {"error"}, case.as_curl_command()
        seen.add((case.operation.label, answer.status_code))

    for operation in (result.ok() for result in schema.get_all_operations()):
        with contextlib.suppress(Unsatisfiable):  # an operation that takes nothing
            every(given(case=operation.as_strategy(generation_mode=mode))(one))()
    return seen


MODES = pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name.lower())


@MODES
def test_no_request_is_answered_by_a_failure(mode, schema):
    seen = check(schema, mode, 10)
    operations = {where for where, _ in seen}
    assert len(operations) > 25
    expected = 200 if mode is GenerationMode.POSITIVE else 422
    assert len([where for where, status in seen if status == expected]) > 15


@pytest.mark.slow
@MODES
def test_no_request_of_very_many_is_answered_by_a_failure(mode, schema):
    check(schema, mode, 300)
