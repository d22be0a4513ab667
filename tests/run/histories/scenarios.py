"""The studies whose histories are recorded: one for every kind of problem, setting and method."""

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import calamint as cm
from calamint.acquire import EICD, EV, IECI, PESC, RS, RSDG
from calamint.decide import VirtualClock
from calamint.testbed import CLASSIC, gp_prior

# Recorded before values were transformed.
DEFAULT = cm.Model(transform="none")
MAP = cm.Model(hyperparameters="map", transform="none")
FEW = cm.Model(samples=3, transform="none")
DECIDING = {"full": 1.0, "partial": 0.1}


@dataclass
class Scenario:
    """A study on a virtual clock: what it is about, what its tasks return and how long they take.

    measure  task, parameters, number of the job -> values, or a text that says why it failed
    script   after so many jobs have ended: something that a user does to the study
    """

    problem: cm.Problem
    measure: Callable[[str, Mapping[str, Any], int], Any]
    jobs: int
    settings: dict[str, Any] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    script: Mapping[int, Callable[[cm.Study], Any]] = field(default_factory=dict)

    def study(self) -> cm.Study:
        settings = {"model": DEFAULT, **self.settings}
        return cm.Study(self.problem, seed=1, clock=VirtualClock(DECIDING), **settings)


def run(scenario: Scenario) -> list[dict[str, Any]]:
    """Run it, and return what happened, in order."""
    study = scenario.study()
    events: list[dict[str, Any]] = []
    running: list[tuple[float, int, cm.Job]] = []
    asked = ended = 0
    while True:
        if ended in scenario.script and not any(e.get("after") == ended for e in events):
            events.append({"kind": "script", "after": ended, "at": study.clock.now()})
            scenario.script[ended](study)
        ready = running and running[0][0] <= study.clock.now()
        at = study.clock.now()
        job = None if asked >= scenario.jobs or ready else study.ask()
        if job is not None:
            asked += 1
            events.append({"kind": "asked", "at": at, **written(job)})
            lasts = scenario.durations.get(job.task, 1.0)
            heapq.heappush(running, (study.clock.now() + lasts, job.number, job))
            continue
        if not running:
            if asked >= scenario.jobs:
                break
            study.clock.move(study.clock.now() + 1.0)  # a retry waits
            continue
        moment, _, job = heapq.heappop(running)
        study.clock.move(moment)
        values = scenario.measure(job.task, job.params, job.number)
        seconds = scenario.durations.get(job.task, 1.0)
        tell(study, job, values, seconds)
        ended += 1
        events.append(
            {
                "kind": "ended",
                "at": moment,
                "job": job.number,
                "attempt": job.attempt,
                "values": values,
                "seconds": seconds,
            }
        )
        if ended % 6 == 0 or ended == scenario.jobs:
            events.append({"kind": "looked", "at": study.clock.now(), **looked(study)})
    return events


def tell(study: cm.Study, job: cm.Job, values: Any, seconds: float) -> None:
    if isinstance(values, str):
        study.fail(job, values)
    else:
        study.tell(job, values, seconds)


def written(job: cm.Job) -> dict[str, Any]:
    """A job, as far as a decision determines it."""
    return {
        "job": job.number,
        "attempt": job.attempt,
        "task": job.task,
        "params": job.params,
        "resources": list(job.resources),
        "bits": job.bits,
        "cost": job.cost,
        "scores": job.scores,
        "update": job.update,
    }


def looked(study: cm.Study) -> dict[str, Any]:
    """What a study answers: a recommendation, predictions and gains at one input."""
    found = study.recommend()
    middle = study.problem.space.decode(np.full(study.problem.space.dimension, 0.4))
    prediction = study.predict(middle)
    return {
        "recommended": found.params,
        "objective": found.objective,
        "probability": found.probability,
        "predicted": {name: [each.mean, each.std] for name, each in prediction.functions.items()},
        "gains": {name: float(value[0]) for name, value in study.gains([middle]).items()},
    }


def _of(solved: Any) -> Callable[[str, Mapping[str, Any], int], Any]:
    """What the tasks of a solved problem measure, without noise."""

    def measure(task: str, params: Mapping[str, Any], _: int) -> Any:
        values = solved.measure(params, np.random.default_rng(0), task)
        return {name: _plain(value) for name, value in values.items()}

    return measure


def _plain(value: Any) -> Any:
    return bool(value) if isinstance(value, bool | np.bool_) else float(value)


def coupled() -> Scenario:
    solved = CLASSIC["toy"]().coupled()
    return Scenario(solved.problem, _of(solved), 12)


def decoupled() -> Scenario:
    solved = CLASSIC["toy"]()
    return Scenario(solved.problem, _of(solved), 20)


def two_machines() -> Scenario:
    """The objective on one machine, limits on another, so that jobs are pending."""
    solved = CLASSIC["gardner1"]()
    problem = solved.problem.changed(
        tasks={"f": cm.Task("f", runs_on="slow"), "c": cm.Task("c", runs_on="fast")},
        resources={"slow": 1, "fast": 2},
    )
    durations = {"f": 5.0, "c": 1.5}
    return Scenario(problem, _of(solved), 22, {"model": FEW}, durations)


def binary() -> Scenario:
    solved = CLASSIC["toy"]().with_binary("c1")
    return Scenario(solved.problem, _of(solved), 18, {"model": FEW})


def failing() -> Scenario:
    """A task that crashes beyond a line, and returns NaN in a corner."""
    solved = CLASSIC["toy"]().coupled()
    inner = _of(solved)

    def measure(task: str, params: Mapping[str, Any], number: int) -> Any:
        if params["x1"] + 0.5 * params["x2"] > 0.9:
            return "it diverged"
        values = inner(task, params, number)
        return {**values, "c1": None} if params["x2"] > 0.8 else values

    return Scenario(solved.problem, measure, 16, {"model": MAP})


def partial() -> Scenario:
    solved = CLASSIC["toy"]()
    return Scenario(solved.problem, _of(solved), 26, {"rationality": 0.3, "model": FEW})


def partial_failing() -> Scenario:
    """The first failure adds a constraint, so that what partial updates go on from is gone."""
    solved = CLASSIC["toy"]()
    inner = _of(solved)

    def measure(task: str, params: Mapping[str, Any], number: int) -> Any:
        if task == "c1" and number > 9 and number % 3 == 1:
            return "it diverged"
        return inner(task, params, number)

    return Scenario(solved.problem, measure, 22, {"rationality": 0.05, "model": MAP})


def batch_with_fantasies() -> Scenario:
    solved = CLASSIC["toy"]()
    problem = solved.problem.changed(resources={"here": 3}, tasks=_anywhere(solved.problem))
    settings = {"rationality": "batch", "fantasies": 4, "model": FEW}
    return Scenario(problem, _of(solved), 21, settings)


def fantasies() -> Scenario:
    solved = CLASSIC["toy"]().coupled()
    problem = solved.problem.changed(resources={"here": 3}, tasks=None)
    return Scenario(problem, _of(solved), 12, {"fantasies": 3, "model": FEW})


def _anywhere(problem: cm.Problem) -> dict[str, cm.Task]:
    return {name: cm.Task(task.measures) for name, task in problem.tasks.items()}


def learnt_costs() -> Scenario:
    """One task is quick, one slow, and how slow depends on the input."""
    solved = CLASSIC["gardner1"]()
    tasks = {
        "f": cm.Task("f", cost="learn"),
        "c": cm.Task("c", cost=lambda params: 1.0 + params["x1"]),
    }
    problem = solved.problem.changed(tasks=tasks, resources={"here": 1})
    return Scenario(problem, _of(solved), 18, {"model": FEW}, {"f": 7.0, "c": 1.0})


def mixed_space() -> Scenario:
    """Every kind of parameter, an objective that is maximised, a known constraint."""
    problem = cm.Problem(
        {"x": cm.Real(1e-3, 1, log=True), "n": cm.Integer(1, 6), "k": cm.Choice("a", "b", "c")},
        maximize="f",
        constraints=["c <= 3.5", "size <= 5"],
        known={"size": lambda params: float(params["n"])},
    )

    def measure(task: str, params: Mapping[str, Any], _: int) -> Any:
        value = math.log10(params["x"]) ** 2 + (params["n"] - 4) ** 2 + (params["k"] != "b")
        return {"f": -value, "c": params["n"] - math.log10(params["x"]) / 3}

    return Scenario(problem, measure, 14, {"model": FEW})


def intervals_with_errors() -> Scenario:
    """Two-sided limits, noise, standard errors, maximum likelihood, another kernel."""
    problem = cm.Problem(
        {"x": cm.Real(0, 2), "y": cm.Real(-1, 1)}, minimize="f", constraints=["0.2 <= c <= 0.6"]
    )

    def measure(task: str, params: Mapping[str, Any], number: int) -> Any:
        noise = np.random.default_rng(number).standard_normal(2)
        x, y = params["x"], params["y"]
        return {
            "f": [math.sin(3 * x) + y * y + 0.05 * noise[0], 0.05],
            "c": x * y + 0.02 * noise[1],
        }

    model = cm.Model(kernel={"f": "se", "c": "matern32"}, hyperparameters="mle", transform="none")
    return Scenario(problem, measure, 14, {"model": model, "delta": 0.1})


def fixed_hyperparameters() -> Scenario:
    solved = gp_prior(1, seed=3, noise_std=0.0)
    model = cm.Model(kernel="se", lengthscale=0.1, amplitude=1.0, noise_variance=0.0)
    return Scenario(solved.problem, _of(solved), 14, {"model": model, "acquisition": PESC(20)})


def _method(acquisition: Any, jobs: int = 11, **settings: Any) -> Scenario:
    solved = CLASSIC["toy"]().coupled()
    given = {"acquisition": acquisition, "model": FEW, **settings}
    return Scenario(solved.problem, _of(solved), jobs, given)


def eic() -> Scenario:
    return _method("eic")


def eic_partial() -> Scenario:
    return _method("eic", 16, rationality=0.1)


def eicd() -> Scenario:
    solved = CLASSIC["toy"]()
    settings = {"acquisition": "eicd", "model": FEW, "rationality": 0.4}
    return Scenario(solved.problem, _of(solved), 18, settings)


def eicd_monte_carlo() -> Scenario:
    solved = CLASSIC["gardner1"]()
    settings = {"acquisition": EICD("monte carlo"), "model": MAP}
    return Scenario(solved.problem, _of(solved), 12, settings)


def ieci() -> Scenario:
    return _method(IECI(100))


def ev() -> Scenario:
    return _method(EV(60), 8, model=MAP)


def auglag() -> Scenario:
    solved = CLASSIC["toy"]().coupled()
    problem = solved.problem.changed(
        known={"f": lambda params: params["x1"] + params["x2"]}, tasks=None
    )

    def measure(task: str, params: Mapping[str, Any], _: int) -> Any:
        values = solved.evaluate(params)
        return {"c1": values["c1"], "c2": values["c2"]}

    return Scenario(problem, measure, 11, {"acquisition": "auglag", "model": FEW})


def thompson() -> Scenario:
    return _method("thompson")


def rs() -> Scenario:
    return _method(RS(100, 2000), 8)


def rsdg() -> Scenario:
    solved = CLASSIC["toy"]()
    settings = {"acquisition": RSDG(30, 2000), "model": FEW}
    return Scenario(solved.problem, _of(solved), 15, settings)


def random() -> Scenario:
    solved = CLASSIC["toy"]()
    return Scenario(solved.problem, _of(solved), 12, {"acquisition": "random"})


def interrupted() -> Scenario:
    """Retries, a job that the user wants, one that is cancelled, measurements from elsewhere."""
    solved = CLASSIC["gardner1"]()
    tasks = {
        "f": cm.Task("f", failures="retry"),
        "c": cm.Task("c", failures="ignore", cost=0.5),
    }
    problem = solved.problem.changed(tasks=tasks, resources={"here": 2})
    inner = _of(solved)

    def measure(task: str, params: Mapping[str, Any], number: int) -> Any:
        if number in (2, 9):
            return "the machine was restarted"
        return inner(task, params, number)

    def add(study: cm.Study) -> None:
        params = {"x1": 4.5, "x2": 5.5}
        study.add(params, {**inner("f", params, 0), "c": (inner("c", params, 0)["c"], 0.01)})

    script = {
        4: lambda study: study.enqueue("c", {"x1": 3.0, "x2": 3.0}),
        7: add,
    }
    settings = {"model": MAP, "rationality": 0.5, "retries": 1}
    return Scenario(problem, measure, 20, settings, {"f": 2.0}, script)


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    make.__name__: make
    for make in (
        coupled,
        decoupled,
        two_machines,
        binary,
        failing,
        partial,
        partial_failing,
        batch_with_fantasies,
        fantasies,
        learnt_costs,
        mixed_space,
        intervals_with_errors,
        fixed_hyperparameters,
        eic,
        eic_partial,
        eicd,
        eicd_monte_carlo,
        ieci,
        ev,
        auglag,
        thompson,
        rs,
        rsdg,
        random,
        interrupted,
    )
}
