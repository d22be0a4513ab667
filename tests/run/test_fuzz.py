"""Random studies: every method, mixed spaces, extreme values, failures, transforms, restarts. No
error but ours, no warning, nothing outside the space, and no decision that takes long."""

import math
import time
import warnings
from collections import Counter

import numpy as np
import pytest
from tests.run.cases import check_books

import calamint as cm
from calamint.acquire import ACQUISITIONS

SLOW = {"ev", "rs", "rsdg", "ieci"}  # docs/methods.md says so
LONGEST = 10.0
EXTREMES = (0.0, -0.0, 1e-300, -1e-160, 1e300, -1e300, 1e17, 1.0, math.nan, math.inf, None)


def space_of(rng):
    made = {}
    for index in range(rng.integers(1, 5)):
        kind = rng.integers(4)
        low = float(rng.choice([-1e6, -1.0, 0.0, 1e-9, 3.0]))
        if kind == 0:
            made[f"p{index}"] = cm.Real(low, low + float(rng.choice([1e-3, 1.0, 1e6])))
        elif kind == 1:
            made[f"p{index}"] = cm.Real(1e-6, float(rng.choice([1e-3, 1.0, 1e9])), log=True)
        elif kind == 2:
            made[f"p{index}"] = cm.Integer(int(rng.integers(-3, 2)), int(rng.integers(3, 200)))
        else:
            made[f"p{index}"] = cm.Choice(*["a", 1, True, 2.5, "b"][: rng.integers(2, 6)])
    return made


def problem_of(rng):
    space, limits = space_of(rng), []
    for index in range(rng.integers(0, 4)):
        name = f"c{index}"
        limits.append(
            str(rng.choice([f"{name} >= 0", f"{name} <= 1e5", f"-1 <= {name} <= 1", name]))
        )
    functions = ["f", *(f"c{index}" for index in range(len(limits)))]
    goal = {"minimize" if rng.random() < 0.7 else "maximize": "f"}
    if rng.random() < 0.5:
        return cm.Problem(space, constraints=limits, **goal), False
    tasks = {
        f"t{index}": cm.Task(
            [name],
            cost=float(rng.choice([0.1, 1.0, 50.0])),
            failures=str(rng.choice(["model", "retry", "ignore"])),
        )
        for index, name in enumerate(functions)
    }
    return cm.Problem(space, constraints=limits, tasks=tasks, **goal), len(functions) > 1


def values_of(problem, task, params, rng, wild):
    found = {}
    numbers = [
        hash(value) % 97 / 97 if isinstance(value, str) else value for value in params.values()
    ]
    for name in problem.tasks[task].measures:
        if name in problem.binary:
            found[name] = bool(rng.random() < 0.6)
        elif rng.random() < wild:
            found[name] = EXTREMES[rng.integers(len(EXTREMES))]
        else:
            found[name] = float(
                np.sin(sum(math.atan(float(n)) for n in numbers)) * rng.choice([1, 1e4])
            )
    return found


def live(seed, path):
    """One study; what it did."""
    rng = np.random.default_rng(seed)
    problem, apart = problem_of(rng)
    names = [
        name
        for name, kind in ACQUISITIONS.items()
        if (kind.supports_decoupled or not apart) and (name not in SLOW or rng.random() < 0.1)
    ]
    method = str(rng.choice(names))
    model = cm.Model(
        kernel=str(rng.choice(["matern52", "matern32", "se"])),
        hyperparameters=str(rng.choice(["sampled", "map", "mle"])),
        samples=3,
        transform=str(rng.choice(["auto", "none", "log", "asinh"])),
    )
    settings = {
        "acquisition": method,
        "model": model,
        "seed": seed,
        "initial": int(rng.integers(0, 4)),
        "delta": float(rng.choice([0.01, 0.05, 0.5])),
        "rationality": [math.inf, 0.1, "batch"][rng.integers(3)],
        "fantasies": int(rng.choice([1, 3])),
        "pause": 0.0,
    }
    url = f"sqlite:///{path}" if rng.random() < 0.3 else "sqlite://"
    try:
        study = cm.Study(problem, url, **settings)
    except cm.ProblemError:
        return "refused"
    wild = float(rng.choice([0.0, 0.1, 0.5]))
    pending = []
    for _ in range(rng.integers(4, 12)):
        begin = time.monotonic()
        job = study.ask()
        took = time.monotonic() - begin
        if method not in SLOW:
            assert took < LONGEST, (seed, method, took)
        if job is not None:
            assert problem.space.validate(job.params) == job.params
            pending.append(job)
        if pending and (job is None or rng.random() < 0.8):
            job = pending.pop(rng.integers(len(pending)))
            end(study, problem, job, rng, wild)
        if url != "sqlite://" and rng.random() < 0.2:
            study.database.close()
            study = cm.Study.load(url)
    if study.history:
        best = study.recommend(kind=str(rng.choice(["believed", "observed"])))
        assert problem.space.validate(best.params) == best.params
        assert 0 <= best.probability <= 1
        str(best), str(study.predict(best.params)), study.table()
    if url != "sqlite://":
        study.database.close()
        check_books(path)
    return method


def end(study, problem, job, rng, wild):
    kind = rng.random()
    if kind < 0.1:
        study.fail(job, "it broke", str(rng.choice(["crashed", "timeout", "infrastructure"])))
    elif kind < 0.15:
        study.cancel(job)
    else:
        study.tell(job, values_of(problem, job.task, job.params, rng, wild), seconds=1.0)
    failed = [each.number for each in study.jobs if each.state == "failed"]
    if failed and rng.random() < 0.1:
        study.forgive(int(rng.choice(failed)))
    held = [each.number for each in study.jobs if each.state == "held"]
    if held:
        study.release(int(rng.choice(held)))


@pytest.mark.parametrize("studies", [15, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_studies(tmp_path, studies, capsys):
    lived = Counter()
    for seed in range(studies):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                lived[live(seed, tmp_path / f"{seed}.db")] += 1
            except Exception as error:
                raise AssertionError(f"study {seed}: {type(error).__name__}: {error}") from error
    if studies > 100:
        with capsys.disabled():
            print(f"\n{studies} random studies: {dict(lived)}")
