"""What does running cost? Sixty jobs of a scikit-learn task through `Study.run`.

    make peers-setup
    .venv-peers/bin/python benchmarks/workers.py

A random forest on the digits, threefold cross-validation, under a limit on its number of leaves;
PESC decides. Beside it the work itself: the same sixty inputs in a loop, in one process. With
`Local(reuse=False)` every job has a new process, which imports scikit-learn again. All in one run,
on a quiet machine; written to `results/workers.md`.
"""

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from calamint import Integer, Local, Problem, Real, Study

RESULTS = Path(__file__).parent / "results"
JOBS = 60
PROBLEM = Problem(
    {
        "trees": Integer(50, 200, log=True),
        "depth": Integer(4, 16),
        "features": Real(0.05, 0.5),
    },
    minimize="error",
    constraints=["leaves <= 10000"],
)


def forest(params: Mapping[str, Any]) -> dict[str, float]:
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score

    x, y = load_digits(return_X_y=True)
    model = RandomForestClassifier(
        params["trees"],
        max_depth=params["depth"],
        max_features=params["features"],
        random_state=0,
    )
    error = 1 - cross_val_score(model, x, y, cv=3).mean()
    model.fit(x, y)
    return {
        "error": float(error),
        "leaves": float(sum(tree.get_n_leaves() for tree in model.estimators_)),
    }


def run(reuse: bool, folder: str) -> tuple[float, float, list[Mapping[str, Any]]]:
    """Seconds of sixty jobs, those of deciding, and the inputs."""
    study = Study(PROBLEM, f"sqlite:///{folder}/{reuse}.db", seed=0)
    begin = time.perf_counter()
    report = study.run(forest, evaluations=JOBS, executor=Local(reuse=reuse))
    seconds = time.perf_counter() - begin
    assert report.failed == 0, report
    return seconds, report.decision_seconds, [record.params for record in study.history]


def work(inputs: list[Mapping[str, Any]]) -> float:
    forest(inputs[0])  # imports are not work
    begin = time.perf_counter()
    for params in inputs:
        forest(params)
    return time.perf_counter() - begin


def main() -> None:
    lines = [
        f"| {JOBS} jobs | seconds | deciding | the work itself | ratio |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for reuse, title in ((True, "workers are kept"), (False, "a new process for each job")):
            seconds, deciding, inputs = run(reuse, folder)
            alone = work(inputs)
            lines.append(
                f"| {title} | {seconds:.1f} | {deciding:.1f} | {alone:.1f}"
                f" | {seconds / alone:.2f} |"
            )
    table = "\n".join(lines)
    print(table)
    (RESULTS / "workers.md").write_text(f"# What running costs\n\n{__doc__}\n{table}\n")


if __name__ == "__main__":
    main()
