"""Fig. 6: a fast neural network, and a Hamiltonian Monte Carlo sampler. Needs `.venv-peers`."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import hmc
import mnist
from calamint import Model, Optimizer, Problem, Task
from calamint.acquire import PESC
from curves import curve, draw_panels
from figures.figure import PICTURES, Figure

MODEL = Model("matern52", transform="none")
EVALUATIONS, STARTS, AGAIN = 50, 3, 10
LIMIT_MS = 0.2
# What tasks cost, in seconds: about what they take.
COSTS = {"train": 1.5, "time": 0.1}
COSTS["evaluate"] = sum(COSTS.values())
COLORS = {
    "PESC": "#c0392b",
    "EIC": "#1f3a5f",
    "PESC, decoupled": "#2e7d6b",
    "PESC, decoupled, confirmed": "#8e6bb0",
}
Method = Literal["PESC", "EIC", "PESC, decoupled", "PESC, decoupled, confirmed"]
# Joint evaluations that are kept for confirming a recommendation.
KEPT = 3.0


@dataclass(frozen=True)
class Row:
    """One evaluation of one run.

    Attributes:
        spent: Joint evaluations so far, or what decoupled ones cost in terms of these.
        seconds: What was really spent on measuring so far, and on `deciding`.
        best: The best objective measured so far where every limit was met.
        again: At half of the budget and at its end, the mean of ten evaluations of the recommended
            input; infeasible ones count as the worst objective. NaN elsewhere.
        feasible: How many of these ten met every limit.
    """

    method: str
    seed: int
    evaluation: int
    task: str
    spent: float
    seconds: float
    deciding: float
    best: float
    again: float
    feasible: int

    @property
    def key(self) -> tuple[str, int, int]:
        return self.method, self.seed, self.evaluation


@dataclass(frozen=True)
class Learning:
    """A machine learning method to tune: a problem, how its tasks are measured, and what an
    infeasible answer counts."""

    problem: Problem
    worst: float

    def measure(self, task: str, params: Mapping[str, Any], seed: int) -> dict[str, float]:
        raise NotImplementedError


class Network(Learning):
    def measure(self, task: str, params: Mapping[str, Any], seed: int) -> dict[str, float]:
        found = {}
        if task in ("evaluate", "train"):
            found["error"] = mnist.train(params, seed)
        if task in ("evaluate", "time"):
            found["prediction_ms"] = mnist.prediction_ms(params)
        return found


class Sampler(Learning):
    def measure(self, task: str, params: Mapping[str, Any], seed: int) -> dict[str, float]:  # noqa: ARG002
        return hmc.diagnose(params, seed)


def network(decoupled: bool) -> Network:
    measures = {"train": ["error"], "time": ["prediction_ms"]}
    tasks = {name: Task(each, cost=COSTS[name]) for name, each in measures.items()}
    together = {"evaluate": Task(["error", "prediction_ms"], cost=COSTS["evaluate"])}
    limits = [f"prediction_ms <= {LIMIT_MS}"]
    chosen = tasks if decoupled else together
    return Network(Problem(mnist.SPACE, "error", constraints=limits, tasks=chosen), 100.0)


def sampler() -> Sampler:
    limits = ["geweke <= 2", "r_hat <= 1.2"]
    return Sampler(Problem(hmc.SPACE, maximize="ess", constraints=limits), 0.0)


def search(learning: Learning, method: Method, seed: int) -> list[Row]:
    """Spend the budget, and evaluate what is recommended at half of it and at its end."""
    problem = learning.problem
    sign = -1.0 if problem.objective.maximize else 1.0
    optimizer = Optimizer(
        problem, "eic" if method == "EIC" else PESC(solutions=10), MODEL, seed=seed, initial=STARTS
    )
    rows: list[Row] = []
    spent, seconds, deciding, best = 0.0, 0.0, 0.0, np.inf
    moments = [EVALUATIONS / 2, float(EVALUATIONS)]
    while moments:
        begin = time.perf_counter()
        confirming = method.endswith("confirmed") and spent >= moments[0] - KEPT
        job = (optimizer.confirm() if confirming else None) or optimizer.ask()
        deciding += time.perf_counter() - begin
        assert job is not None
        begin = time.perf_counter()
        try:
            optimizer.tell(job, learning.measure(job.task, job.params, 1000 * seed + len(rows)))
        except hmc.DivergenceError as error:
            optimizer.fail(job, str(error))
        seconds += time.perf_counter() - begin
        spent += COSTS.get(job.task, 0.0) / COSTS["evaluate"]
        best = min(best, _best(optimizer, sign))
        again, feasible = np.nan, 0
        if spent >= moments[0] - 1e-9:
            moments.pop(0)
            again, feasible = evaluate_again(learning, optimizer, seed)
        rows.append(
            Row(
                method,
                seed,
                len(rows) + 1,
                job.task,
                round(spent, 4),
                round(seconds, 3),
                round(deciding, 3),
                sign * best if np.isfinite(best) else learning.worst,
                again,
                feasible,
            )
        )
    return rows


def _best(optimizer: Optimizer, sign: float) -> float:
    """The least objective among inputs at which everything was measured, and met its limits."""
    joined: dict[str, dict[str, float]] = {}
    for record in optimizer.history:
        joined.setdefault(repr(record.params), {}).update(record.values)
    problem = optimizer.problem
    found = [
        sign * values[problem.objective.name]
        for values in joined.values()
        if len(values) == len(problem.functions)
        and all(limit.met(values[limit.name]) for limit in problem.constraints)
    ]
    return min(found, default=np.inf)


def evaluate_again(learning: Learning, optimizer: Optimizer, seed: int) -> tuple[float, int]:
    """The mean of ten fresh evaluations of the recommended input, and how many were feasible."""
    params = optimizer.recommend().params
    problem = learning.problem
    scores, feasible = [], 0
    for run in range(AGAIN):
        values: dict[str, float] = {}
        try:
            for task in problem.tasks:
                values |= learning.measure(task, params, 1_000_000 + 1000 * seed + run)
        except hmc.DivergenceError:
            scores.append(learning.worst)
            continue
        met = all(limit.met(values[limit.name]) for limit in problem.constraints)
        feasible += met
        scores.append(values[problem.objective.name] if met else learning.worst)
    return float(np.mean(scores)), feasible


def work6a(method: Method, seed: int) -> list[Row]:
    return search(network("decoupled" in method), method, seed)


def work6b(method: Method, seed: int) -> list[Row]:
    return search(sampler(), method, seed)


def _report(name: str, objective: str, found: list[Row]) -> str:
    methods = [method for method in COLORS if any(row.method == method for row in found)]
    curves = {
        method: curve(((row.spent, row.best) for row in found if row.method == method), np.mean)
        for method in methods
        if "decoupled" not in method  # it need not measure everything at one input
    }
    titles = {f"best measured {objective}": curves}
    draw_panels(
        titles,
        COLORS,
        PICTURES / f"{name}.png",
        y=f"mean {objective}",
        bold="PESC",
        logarithmic=name == "fig6a",
    )
    lines = [
        f"| method | runs | budget | {objective}, evaluated again: mean | between runs |"
        " feasible | measuring | deciding | measurements by task |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for method in methods:
        runs = {row.seed for row in found if row.method == method}
        for share, end in (("half", EVALUATIONS / 2), ("all", float(EVALUATIONS))):
            own = [
                row
                for row in found
                if row.method == method
                and np.isfinite(row.again)
                and (row.spent >= EVALUATIONS - 1e-9) == (end == EVALUATIONS)
            ]
            tasks: dict[str, float] = {}
            for row in found:
                if row.method == method and row.spent <= end + 1e-9:
                    tasks[row.task] = tasks.get(row.task, 0.0) + 1 / len(runs)
            scores = np.array([row.again for row in own])
            lines.append(
                f"| {method} | {len(own)} | {share} | {scores.mean():.4g}"
                f" | {scores.std(ddof=1) if len(scores) > 1 else 0:.2g}"
                f" | {sum(row.feasible for row in own)} of {AGAIN * len(own)}"
                f" | {np.mean([row.seconds for row in own]):.0f} s"
                f" | {np.mean([row.deciding for row in own]):.0f} s"
                f" | {', '.join(f'{task} {count:.1f}' for task, count in tasks.items())} |"
            )
    return "\n".join(lines)


def report6a(found: list[Row]) -> str:
    return _report("fig6a", "error, %", found)


def report6b(found: list[Row]) -> str:
    return _report("fig6b", "effective sample size", found)


FIG6A = Figure(
    "fig6a",
    "A network with three hidden layers and the paper's twelve parameters on 5,000 MNIST images:"
    f" validation error under a mean prediction time of {LIMIT_MS} ms for 128 images, really"
    f" measured. {EVALUATIONS} joint evaluations, or measurements of the same cost; then the"
    f" recommended input {AGAIN} times, an infeasible one counting as an error of 100 %. Matérn"
    " 5/2, ten hyper-parameter samples, ten x*, δ = 0.05.",
    report6a,
    tuple(COLORS),
    work6a,  # type: ignore[arg-type]
    Row,
    repetitions=5,
    alone=True,
)
FIG6B = Figure(
    "fig6b",
    "Hamiltonian Monte Carlo for a logistic regression on the breast cancer data, two chains of"
    f" {hmc.GRADIENTS} gradients: the least effective sample size under |z| ≤ 2 of Geweke and"
    " R̂ ≤ 1.2; a run that diverges fails."
    f" {EVALUATIONS} evaluations, then the recommended input {AGAIN} times, an infeasible one"
    " counting as zero. Matérn 5/2, ten hyper-parameter samples, ten x*, δ = 0.05.",
    report6b,
    ("PESC", "EIC"),
    work6b,  # type: ignore[arg-type]
    Row,
    repetitions=10,
)
