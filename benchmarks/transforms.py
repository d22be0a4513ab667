"""Transforms and confirmation on the testbed: chosen scales against values as they are.

    .venv/bin/python benchmarks/transforms.py                  # all problems, 20 repetitions
    .venv/bin/python benchmarks/transforms.py --problems toy --repetitions 5
    make peers-setup
    .venv-peers/bin/python benchmarks/transforms.py --peers    # BoTorch and Optuna

All append to `results/transforms.csv` and go on where they stopped. Everything is measured
together, without noise, from the same starts. "none" and "auto" are believed gaps; "auto,
confirmed" spends the last three of the same evaluations on the recommended input, and its gap is
that of the best input that was measured and met every limit.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import harness
from pilot import Coupled

RESULTS = Path(__file__).parent / "results"
CONFIRM = 3
# Evaluations and starting points of each problem, and where to look at it.
PROBLEMS = {
    "toy": (21, 3, (15, 21)),
    "branin": (30, 3, (20, 30)),
    "mystery": (30, 3, (20, 30)),
    "sasena2": (21, 3, (15, 21)),
    "gardner1": (30, 3, (20, 30)),
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


def main() -> None:
    parser = argparse.ArgumentParser(description="Transforms and confirmation on the testbed.")
    parser.add_argument("--peers", action="store_true", help="run the peers, not Calamint")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    options = parser.parse_args()
    path = RESULTS / "transforms.csv"
    entries = [
        harness.Entry(name, method, Coupled(name), make, PROBLEMS[name][0])
        for name in options.problems
        for method, make in makers(options.peers, *PROBLEMS[name][:2]).items()
    ]
    harness.run(entries, range(options.repetitions), path, options.processes, tolerance=0.0)
    looks = {name: at for name, (_, _, at) in PROBLEMS.items()}
    harness.report(path, looks, f"# Transforms\n\n{__doc__}")


if __name__ == "__main__":
    main()
