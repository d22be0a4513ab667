"""What does storing cost? A Study beside the bare Optimizer, and opening a large study.

    .venv/bin/python benchmarks/study.py

Random acquisition, so that deciding itself takes no time; SQLite in a file, 500 finished jobs; then
5,000 rows with two measurements each. Medians of seven rounds, both in the same run. Written to
`results/study.md`.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from calamint import Optimizer, Problem, Real, Study

RESULTS = Path(__file__).parent / "results"
PROBLEM = Problem({"x": Real(0, 1), "y": Real(0, 1)}, minimize="f", constraints=["c >= 0"])
VALUES = {"f": 1.0, "c": 2.0}
FINISHED, PAIRS, ROUNDS, ROWS = 500, 40, 7, 5000


def pairs(on: Study | Optimizer, count: int) -> None:
    for _ in range(count):
        job = on.ask()
        assert job is not None
        on.tell(job, VALUES)  # type: ignore[arg-type]


def milliseconds(work: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start) / times


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        study = Study(PROBLEM, f"sqlite:///{folder}/pairs.db", acquisition="random")
        bare = Optimizer(PROBLEM, "random")
        pairs(study, FINISHED)
        pairs(bare, FINISHED)
        found = [
            (
                milliseconds(lambda: pairs(study, PAIRS), PAIRS),
                milliseconds(lambda: pairs(bare, PAIRS), PAIRS),
            )
            for _ in range(ROUNDS)
        ]
        overhead = statistics.median(stored - alone for stored, alone in found)
        url = f"sqlite:///{folder}/large.db"
        large = Study(PROBLEM, url, acquisition="random")
        points = np.random.default_rng(0).random((ROWS, 2)).tolist()
        added = milliseconds(
            lambda: large.add_all(({"x": x, "y": y}, VALUES) for x, y in points), 1
        )
        opened = [milliseconds(lambda: Study.load(url), 1) for _ in range(ROUNDS)]
        pairs(large, 5)
        slow = milliseconds(lambda: pairs(large, PAIRS), PAIRS)
    lines = [
        "| what | median | lowest – highest |",
        "|---|---|---|",
        f"| ask and tell, Study, {FINISHED} finished jobs | {_shown([a for a, _ in found])} |",
        f"| ask and tell, Optimizer | {_shown([b for _, b in found])} |",
        f"| overhead of a pair | {overhead:.2f} ms | |",
        f"| opening a study with {2 * ROWS} measurements | {_shown(opened)} |",
        f"| adding them at once | {added:.0f} ms | |",
        f"| ask and tell, Study, {2 * ROWS} measurements | {slow:.2f} ms | |",
    ]
    table = "\n".join(lines)
    print(table)
    (RESULTS / "study.md").write_text(f"# What storing costs\n\n{__doc__}\n{table}\n")


def _shown(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ms | {min(values):.2f} – {max(values):.2f}"


if __name__ == "__main__":
    main()
