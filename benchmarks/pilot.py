"""PESC against EIC, BoTorch and Optuna on coupled problems, from the same starts.

    make peers-setup
    .venv-peers/bin/python benchmarks/pilot.py --peers     # the peers' rows
    .venv/bin/python benchmarks/pilot.py                   # Calamint's rows, then the table

Both append to `results/pilot.csv` and go on where they stopped; `--problems toy` runs one of them.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import harness
from calamint.testbed import CLASSIC, SolvedProblem

RESULTS = Path(__file__).parent / "results"
# Evaluations and starting points of each problem, and where to look at it.
PROBLEMS = {
    "toy": (27, 3, (12, 15, 18, 21, 24, 27)),
    "hartmann6": (60, 7, (20, 40, 60)),
    "speed_reducer": (40, 8, (20, 30, 40)),
}


class Coupled:
    """A picklable recipe for a problem whose one task measures everything."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, seed: int) -> SolvedProblem:  # noqa: ARG002 - the same for every seed
        return CLASSIC[self.name]().coupled()


def makers(peers: bool, starts: int) -> dict[str, harness.Make]:
    if peers:
        from peers import BoTorchLogCEI, OptunaGP, PeerMaker

        return {
            "BoTorch LogCEI": PeerMaker(BoTorchLogCEI, starts),
            "Optuna GPSampler": PeerMaker(OptunaGP, starts),
        }
    from calamint import Model
    from contestants import CalamintMaker

    point = Model(hyperparameters="map", transform="none")
    return {
        "PESC, sampled": CalamintMaker("pesc", starts=starts),
        "PESC, MAP": CalamintMaker("pesc", point, starts=starts),
        "EIC, sampled": CalamintMaker("eic", starts=starts),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="PESC against its peers on coupled problems.")
    parser.add_argument("--peers", action="store_true", help="run the peers, not Calamint")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    options = parser.parse_args()
    path = RESULTS / "pilot.csv"
    for name in options.problems:
        evaluations, starts, _ = PROBLEMS[name]
        entries = [
            harness.Entry(name, method, Coupled(name), make, evaluations)
            for method, make in makers(options.peers, starts).items()
        ]
        seeds = range(options.repetitions)
        harness.run(entries, seeds, path, options.processes, tolerance=1e-6)
    looks = {name: at for name, (_, _, at) in PROBLEMS.items()}
    harness.report(path, looks, f"# Coupled problems\n\n{__doc__}")


if __name__ == "__main__":
    main()
