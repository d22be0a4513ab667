"""How far does it go? Decisions with many measurements, constraints and pending jobs; filling many
places; deciding while jobs run; and thousands of workers, simulated.

    .venv/bin/python benchmarks/scale.py

One thread, MAP hyper-parameters, six parameters; each table in one run, each decision in a study
that has everything but that decision. Simulations run on the virtual clock, where a decision takes
what was measured at that number of measurements and of pending jobs. Written to
`results/scale.md`.
"""

import argparse
import math
import os
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from calamint import Model, Optimizer, Problem, Real, Task
from calamint.decide import Suggestion, VirtualClock, simulate

RESULTS = Path(__file__).parent / "results"
D = 6
NAMES = [f"x{index}" for index in range(D)]
MODEL = Model(hyperparameters="map")
MEASURED, PENDING, CONSTRAINTS = (50, 200, 1000, 4000), (0, 16, 128, 1000), (1, 4, 10)
GAMMA = 0.1


class Farm:
    """A smooth objective and wavy constraints, measured separately on one farm."""

    def __init__(self, constraints: int, places: int) -> None:
        rng = np.random.default_rng(constraints)
        self.waves = 2 * rng.standard_normal((constraints, D))
        self.limits = [f"c{index}" for index in range(constraints)]
        self.problem = Problem(
            {name: Real(0, 1) for name in NAMES},
            "f",
            constraints=[f"{name} <= 0.7" for name in self.limits],
            tasks={
                "cost": Task("f", runs_on=["farm"]),
                "check": Task(self.limits, runs_on=["farm"]),
            },
            resources={"farm": places},
        )

    def values(self, task: str, params: Mapping[str, float]) -> dict[str, float]:
        x = np.array([params[name] for name in NAMES])
        if task == "cost":
            return {"f": float(((x - 0.4) ** 2).sum() + 0.1 * np.sin(8 * x[0]))}
        return dict(zip(self.limits, np.sin(self.waves @ x).tolist(), strict=True))

    def optimizer(self, measured: int, pending: int = 0, **settings: object) -> Optimizer:
        """One to which so much was told, and that has so many jobs pending."""
        given = {"model": MODEL, "initial": 0, **settings}
        optimizer = Optimizer(self.problem, **given)  # type: ignore[arg-type]
        rng = np.random.default_rng(0)
        for row in rng.random((measured, D)).tolist():
            params = dict(zip(NAMES, row, strict=True))
            both = self.values("cost", params) | self.values("check", params)
            optimizer.add(params, both)
        for number, row in enumerate(rng.random((pending, D)).tolist()):
            params = dict(zip(NAMES, row, strict=True))
            point = self.problem.space.encode(params)
            task = ("cost", "check")[number % 2]
            optimizer.enqueue(Suggestion(number, task, params, ("farm",), point=point))
        return optimizer


def decision_seconds(constraints: int, measured: int, pending: int) -> tuple[float, float]:
    """Of a full update, and of a partial one after one more result."""
    full, partial = [], []
    for _ in range(1 if measured > 1000 else 3):
        task = Farm(constraints, pending + 10)
        optimizer = task.optimizer(measured, pending, rationality=0)
        job = optimizer.ask()
        assert job is not None
        assert job.update == "full"
        full.append(job.decision_seconds)
        optimizer.tell(job, task.values(job.task, job.params))
        job = optimizer.ask()
        assert job is not None
        assert job.update == "partial"
        partial.append(job.decision_seconds)
    return statistics.median(full), statistics.median(partial)


Seconds = dict[tuple[int, int, int], tuple[float, float]]


def decisions() -> tuple[str, Seconds]:
    cases = [
        *((1, measured, pending) for measured in MEASURED for pending in PENDING),
        *((constraints, 200, 16) for constraints in CONSTRAINTS[1:]),
    ]
    lines = [
        "| constraints | measurements | pending | full, s | partial, s | a second, γ = 0.1 |",
        "|---|---|---|---|---|---|",
    ]
    found = {}
    for case in cases:
        full, partial = found[case] = decision_seconds(*case)
        rate = (1 - GAMMA) / partial
        line = " | ".join(map(str, case)) + f" | {full:.3f} | {partial:.3f} | {rate:.1f}"
        lines.append(f"| {line} |")
        print(lines[-1], flush=True)
    return "\n".join(lines), found


def filling() -> str:
    """1,000 places of one farm; and fifty tasks on fifty resources of a hundred."""
    lines = ["| what | jobs | seconds | ms a job | different inputs |", "|---|---|---|---|---|"]

    def fill(what: str, optimizer: Optimizer, count: int) -> None:
        begin = time.perf_counter()
        jobs = []
        for _ in range(count):
            job = optimizer.ask()
            assert job is not None
            jobs.append(job)
        seconds = time.perf_counter() - begin
        different = len({(job.task, *job.params.values()) for job in jobs})
        lines.append(
            f"| {what} | {count} | {seconds:.1f} | {1000 * seconds / count:.0f} | {different} |"
        )
        print(lines[-1], flush=True)

    for measured in (30, 200):
        optimizer = Farm(1, 1000).optimizer(measured, rationality="batch")
        fill(f"1,000 places, {measured} measurements", optimizer, 1000)
    names = [f"g{index}" for index in range(5)]
    problem = Problem(
        {name: Real(0, 1) for name in NAMES},
        "g0",
        constraints=[f"{name} <= 0.7" for name in names[1:]],
        tasks={f"t{i}": Task(names[i % 5], runs_on=[f"r{i}"]) for i in range(50)},
        resources={f"r{i}": 100 for i in range(50)},
    )
    many = Optimizer(problem, model=MODEL, initial=0, rationality="batch")
    rng = np.random.default_rng(0)
    waves = 2 * rng.standard_normal((5, D))
    for row in rng.random((30, D)).tolist():
        values = dict(zip(names, np.sin(waves @ row).tolist(), strict=True))
        many.add(dict(zip(NAMES, row, strict=True)), values)
    fill("50 tasks of five functions on 50 resources of 100", many, 1000)
    return "\n".join(lines)


def overlapping() -> str:
    """How long a free place waits: from the telling of a result to the next job."""
    lines = [
        "| measurements | rationality | `ask`, median, s | longest, s | of that prepared, s |",
        "|---|---|---|---|---|",
    ]
    for measured in (50, 200, 1000):
        for rationality in (math.inf, "batch", "overlap"):
            task = Farm(1, 4)
            optimizer = task.optimizer(measured, rationality=rationality)
            running = [optimizer.ask() for _ in range(4)]
            asks, prepared = [], []
            for _ in range(12 if measured < 1000 else 6):
                begin = time.perf_counter()
                optimizer.prepare()
                prepared.append(time.perf_counter() - begin)
                job = running.pop(0)
                assert job is not None
                optimizer.tell(job, task.values(job.task, job.params))
                begin = time.perf_counter()
                running.append(optimizer.ask())
                asks.append(time.perf_counter() - begin)
            name = "∞" if rationality == math.inf else f'"{rationality}"'
            ahead = f"{statistics.median(prepared):.3f}" if rationality == "overlap" else "–"
            lines.append(
                f"| {measured} | {name} | {statistics.median(asks):.3f} | {max(asks):.3f}"
                f" | {ahead} |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines)


def gaps(repetitions: int = 10) -> str:
    """Is a decision that was prepared as good? The toy problem, one job at a time."""
    from calamint.testbed import CLASSIC

    lines = [
        "| rationality | evaluations | median gap | of repetitions |",
        "|---|---|---|---|",
    ]
    for rationality in (math.inf, "overlap"):
        found: dict[int, list[float]] = {20: [], 30: [], 40: []}
        for seed in range(repetitions):
            solved = CLASSIC["toy"]().coupled()
            optimizer = Optimizer(solved.problem, seed=seed, rationality=rationality)
            for count in range(1, 41):
                job = optimizer.ask()
                assert job is not None
                optimizer.tell(job, solved.evaluate(job.params))
                if count in found:
                    best = optimizer.recommend().params
                    values = solved.evaluate(best)
                    met = all(values[c.name] >= 0 for c in solved.problem.constraints)
                    gap = abs(values["f"] - solved.optimum) if met else 1.0
                    found[count].append(gap)
        for count, each in found.items():
            name = "∞" if rationality == math.inf else f'"{rationality}"'
            line = f"| {name} | {count} | {statistics.median(each):.1e} | {repetitions} |"
            lines.append(line)
            print(line, flush=True)
    return "\n".join(lines)


# -- simulations -----------------------------------------------------------------------------------


class Deciding(Mapping[str, float]):
    """What a decision takes, interpolated from what was measured; full updates take a share γ of
    the time."""

    def __init__(self, seconds: Seconds, scale: float) -> None:
        self.scale, self.optimizer = scale, None
        self.table = {
            (measured, pending): each
            for (constraints, measured, pending), each in seconds.items()
            if constraints == 1
        }
        self.last_full, self.spent = -math.inf, 0.0

    def at(self, measured: int, pending: int) -> tuple[float, float]:
        """Full and partial, linear between the logarithms of what was measured, and beyond."""

        def between(kind: int) -> float:
            columns, at, known = [], math.log(max(measured, 1)), np.log(MEASURED)
            for p in PENDING:
                times = [math.log(self.table[m, p][kind]) for m in MEASURED]
                slope = (times[-1] - times[-2]) / (known[-1] - known[-2])
                beyond = slope * max(at - known[-1], 0.0)
                columns.append(np.interp(at, known, times) + beyond)
            where = [math.log(p + 1) for p in PENDING]
            return math.exp(float(np.interp(math.log(pending + 1), where, columns)))

        return between(0), between(1)

    def get(self, key: str, default: float = 0.0) -> float:  # type: ignore[override] # noqa: ARG002
        assert self.optimizer is not None
        seen = self.optimizer.observations
        full, partial = self.at(len(seen.history), len(seen.pending))
        now = self.optimizer.clock.time
        took = partial
        if GAMMA * (now - self.last_full) > full * self.scale:
            took, self.last_full = full, now
        self.spent += took * self.scale
        return took * self.scale

    def __getitem__(self, key: str) -> float:
        return self.get(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def utilisation(workers: int, ratio: float, seconds: Seconds) -> tuple[float, float, float]:
    """Of the workers, from when all had a job until no more are asked for; of what decides; and
    the share of the time that it took until all had one. A job takes `ratio` times what a partial
    update takes when it starts, give or take a half."""
    task = Farm(1, workers)
    deciding = Deciding(seconds, 1.0)
    clock = VirtualClock(deciding)
    optimizer = Optimizer(task.problem, "random", initial=0, clock=clock, model=MODEL, seed=0)
    deciding.optimizer = optimizer  # type: ignore[assignment]
    rng = np.random.default_rng(0)

    def lasts(_: Mapping[str, object]) -> float:
        partial = deciding.at(len(optimizer.observations.history), workers)[1]
        return ratio * partial * float(rng.uniform(0.5, 1.5))

    ended = [
        (job.started, job.ended)
        for job in simulate(
            optimizer,
            lambda name, _: dict.fromkeys(task.problem.tasks[name].measures, 0.0),
            dict.fromkeys(task.problem.tasks, lasts),
            jobs=4 * workers,
        )
    ]
    until = max(started for started, _ in ended)
    since = sorted(started for started, _ in ended)[workers - 1]
    busy = sum(max(min(end, until) - max(started, since), 0.0) for started, end in ended)
    return busy / (workers * (until - since)), min(deciding.spent / until, 1.0), since / until


def simulations(seconds: Seconds) -> str:
    lines = [
        "| workers | a job takes as long as so many decisions | workers busy | decider busy"
        " | until all had a job, share of the time |",
        "|---|---|---|---|---|",
    ]
    for workers in (100, 1000, 3000):
        for ratio in (0.5, 1.0, 2.0, 5.0):
            times = ratio * workers
            busy, deciding, filled = utilisation(workers, times, seconds)
            lines.append(
                f"| {workers} | {times:.0f} | {busy:.1%} | {deciding:.0%} | {filled:.1%} |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="How far does it go?")
    parser.add_argument("parts", nargs="*", default=["all"])
    parts = parser.parse_args().parts
    texts = {}
    if {"all", "decisions", "simulations"} & {*parts}:
        texts["What a decision takes"], seconds = decisions()
        texts["Many workers, simulated"] = simulations(seconds)
    if {"all", "filling"} & {*parts}:
        texts["Filling places"] = filling()
    if {"all", "overlapping"} & {*parts}:
        texts["Deciding while jobs run"] = overlapping()
    if {"all", "gaps"} & {*parts}:
        texts["Is it as good?"] = gaps()
    if "all" in parts:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        ).stdout.strip()
        body = "\n\n".join(f"## {title}\n\n{table}" for title, table in texts.items())
        (RESULTS / "scale.md").write_text(f"# Scale\n\n{__doc__}\nAt {commit}.\n\n{body}\n")


if __name__ == "__main__":
    main()
