"""How many jobs a second does a Dask cluster take? Jobs that take no time, chosen at random.

    .venv/bin/python benchmarks/cluster.py

A study in a SQLite file, on worker processes of this machine (`cm.Local()`), and on a Dask cluster
of this machine with one worker for every eight places. The first jobs, which start the processes,
do not count. What a job takes beyond its own time is the inverse. All in one run, on a quiet
machine; written to `results/cluster.md`.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import calamint as cm

RESULTS = Path(__file__).parent / "results"
JOBS = 400


def nothing(params: Mapping[str, Any]) -> float:
    return float(params["x"])


def jobs_a_second(places: int, executor: Any, folder: str) -> float:
    problem = cm.Problem(
        {"x": cm.Real(0, 1), "y": cm.Real(0, 1)}, minimize="f", resources={"here": places}
    )
    url = f"sqlite:///{folder}/{type(executor).__name__}{places}.db"
    # What is known to be exact is not measured twice, so no decision needs a model.
    model = cm.Model(noise_variance=0.0)
    study = cm.Study(problem, url, seed=0, acquisition="random", model=model)
    started = max(2 * places, 20)
    study.run(nothing, evaluations=JOBS + started, executor=executor)
    ends = sorted(each.ended or 0.0 for each in study.attempts(running=False))
    return JOBS / (ends[-1] - ends[started - 1])


def table() -> str:
    from distributed import LocalCluster

    lines = ["| places | Local, jobs a second | Dask, jobs a second | ratio |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for places in (1, 8, 32):
            local = jobs_a_second(places, cm.Local(), folder)
            with LocalCluster(
                n_workers=max(1, places // 8),
                threads_per_worker=min(8, places),
                dashboard_address=None,
            ) as cluster:
                dask = jobs_a_second(places, cm.Dask(cluster), folder)
            lines.append(f"| {places} | {local:.1f} | {dask:.1f} | {dask / local:.2f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    text = table()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    (RESULTS / "cluster.md").write_text(f"# Clusters\n\n{__doc__}\nAt {commit}.\n\n{text}\n")


if __name__ == "__main__":
    main()
