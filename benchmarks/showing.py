"""How long plots and reports take, and how large they are.

    .venv/bin/python benchmarks/showing.py

Two studies of seven parameters, two tasks and three functions, whose jobs were chosen at random:
each plot of 200 jobs by `calamint plot`, starting Python included, and the report of 2,000. Writes
`results/showing.md`. Run it alone.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import calamint as cm
from calamint.show.plots import PLOTS

RESULTS = Path(__file__).parent / "results"
REAL = [f"x{index}" for index in range(5)]


def made(path: Path, jobs: int, **settings: Any) -> str:
    """The URL of a study of so many jobs, chosen at random unless settings say otherwise."""
    problem = cm.Problem(
        {
            **{name: cm.Real(0, 1) for name in REAL},
            "layers": cm.Integer(1, 9),
            "kind": cm.Choice("a", "b"),
        },
        minimize="loss",
        constraints=["latency <= 1", "memory <= 2"],
        tasks={
            "train": cm.Task(["loss"], runs_on="gpu"),
            "profile": cm.Task(["latency", "memory"], runs_on="cpu"),
        },
        resources={"gpu": 2, "cpu": 4},
    )
    clock, rng = cm.VirtualClock(), np.random.default_rng(0)
    url = f"sqlite:///{path}"
    settings = settings or {"acquisition": "random"}
    study = cm.Study(problem, url, seed=0, clock=clock, **settings)

    def train(params: Mapping[str, Any]) -> float:
        distance = sum((params[name] - 0.3) ** 2 for name in REAL)
        return float(distance + 0.1 * (params["kind"] == "a") + 0.01 * rng.standard_normal())

    def profile(params: Mapping[str, Any]) -> dict[str, float]:
        latency = params["x0"] + params["x1"] + 0.02 * params["layers"]
        return {"latency": latency, "memory": 0.3 * params["layers"] + params["x2"]}

    durations = {"train": 60.0, "profile": 20.0}
    study.run(
        {"train": train, "profile": profile},
        evaluations=jobs,
        executor=cm.Simulated(durations, clock),
    )
    return url


def timed(words: list[str], page: Path) -> tuple[float, float]:
    """Seconds of a command, and megabytes of what it wrote."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "calamint", *words, "-o", str(page)]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin, page.stat().st_size / 1e6


def main() -> None:
    lines = ["# Showing", "", f"{__doc__}", "| what | jobs | seconds | MB |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        small, large = (made(Path(folder) / f"{n}.db", n) for n in (200, 2000))
        for name in PLOTS:
            if name not in ("explain", "compare"):  # seven parameters
                seconds, size = timed(["plot", name, "--storage", small], page)
                lines.append(f"| {name} | 200 | {seconds:.1f} | {size:.1f} |")
                print(lines[-1], flush=True)
        seconds, size = timed(["report", "--storage", large], page)
        lines.append(f"| report | 2000 | {seconds:.0f} | {size:.1f} |")
    print(lines[-1])
    (RESULTS / "showing.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
