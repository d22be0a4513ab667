"""Transforms and confirmation on the testbed: chosen scales against values as they are.

    .venv/bin/python benchmarks/transforms.py                  # all problems, 20 repetitions
    .venv/bin/python benchmarks/transforms.py --problems toy --repetitions 5
    make peers-setup
    .venv-peers/bin/python benchmarks/transforms.py --peers    # BoTorch and Optuna

All append to `results/transforms.csv` and go on where they stopped. Everything is measured
together, without noise, from the same starts. "none" and "auto" are believed gaps; "auto,
confirmed" spends the last three of the same evaluations on the recommended input, and its gap is
that of the best input that was measured and met every limit.

The first table is about objectives that span decades: it counts evaluations up to the first
recommendation whose gap only 0.1 % of the feasible box beats.
"""

import argparse
import math
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import harness
from calamint.testbed import CLASSIC, SolvedProblem
from pilot import Coupled

RESULTS = Path(__file__).parent / "results"
CONFIRM = 3
DECADES = ("goldstein_price", "welded_beam", "rosenbrock4")
# Evaluations and starting points of each problem, and where to look at it.
PROBLEMS = {
    "toy": (21, 3, (15, 21)),
    "branin": (40, 3, (20, 30, 40)),
    "mystery": (30, 3, (20, 30)),
    "sasena2": (21, 3, (15, 21)),
    "goldstein_price": (40, 3, (20, 30, 40)),
    "rosenbrock4": (50, 5, (30, 40, 50)),
    "pressure_vessel": (40, 5, (20, 40)),
    "welded_beam": (50, 5, (30, 50)),
    "hartmann6": (50, 7, (30, 50)),
    "speed_reducer": (40, 8, (20, 40)),
    "ackley10": (50, 11, (30, 50)),
}


def makers(peers: bool, evaluations: int, starts: int) -> dict[str, harness.Make]:
    if peers:
        from peers import BoTorchLogCEI, OptunaGP, PeerMaker

        return {
            "BoTorch LogCEI": PeerMaker(BoTorchLogCEI, starts),
            "Optuna GPSampler": PeerMaker(OptunaGP, starts),
        }
    from calamint import Model
    from contestants import CalamintMaker

    confirmed = CalamintMaker(
        "pesc", Model(), starts, kind="observed", confirm_after=evaluations - CONFIRM
    )
    return {
        "auto": CalamintMaker("pesc", Model(), starts),
        "none": CalamintMaker("pesc", Model(transform="none"), starts),
        "auto, confirmed": confirmed,
    }


def decades(rows: list[harness.Row]) -> str:
    """How soon a gap is reached that only 0.1 % of the feasible box beats."""
    lines = [
        "| problem | gap of the best 0.1 % | method | repetitions | median evaluations |",
        "|---|---|---|---|---|",
    ]
    for name in DECADES:
        target = _best_share(CLASSIC[name](), 0.001)
        for method in ("auto", "none"):
            runs: dict[int, list[float]] = {}
            for row in rows:
                if (row.problem, row.method) == (name, method):
                    first = row.evaluation if row.gap <= target else math.inf
                    runs.setdefault(row.seed, []).append(first)
            firsts = [min(run) for run in runs.values()]
            if firsts:
                lines.append(
                    f"| {name} | {target:.3g} | {method} | {len(firsts)} | {np.median(firsts):g} |"
                )
    return "\n".join(lines)


def _best_share(solved: SolvedProblem, share: float) -> float:
    """The gap that this share of the feasible box beats."""
    space, rng = solved.problem.space, np.random.default_rng(0)
    low, high = (
        np.array([getattr(each, end) for each in space.parameters.values()])
        for end in ("low", "high")
    )
    objective: list[float] = []
    while len(objective) < 4000:  # feasible inputs
        inputs = low + (high - low) * rng.random((400_000, len(low)))
        met = np.ones(len(inputs), dtype=bool)
        for limit in solved.problem.constraints:
            values = solved.functions[limit.name](inputs)
            met &= (values >= limit.low) & (values <= limit.high)
        objective += list(solved.functions[solved.problem.objective.name](inputs[met]))
    return float(np.quantile(objective, share)) - solved.optimum


def main() -> None:
    parser = argparse.ArgumentParser(description="Transforms and confirmation on the testbed.")
    parser.add_argument("--peers", action="store_true", help="run the peers, not Calamint")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="+", help="only these; by default all of them")
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    options = parser.parse_args()
    path = RESULTS / "transforms.csv"
    entries = [
        harness.Entry(name, method, Coupled(name), make, PROBLEMS[name][0])
        for name in options.problems
        for method, make in makers(options.peers, *PROBLEMS[name][:2]).items()
        if options.methods is None or method in options.methods
    ]
    harness.run(entries, range(options.repetitions), path, options.processes, tolerance=0.0)
    looks = {name: at for name, (_, _, at) in PROBLEMS.items()}
    text = decades(harness.read(path))
    print(text, "\n")
    harness.report(path, looks, f"# Transforms\n\n{__doc__}\n{text}\n")


if __name__ == "__main__":
    main()
