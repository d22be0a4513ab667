"""Coupled EIC on the toy problem, against BoTorch's LogCEI from the same starts.

    make peers-setup
    .venv-peers/bin/python benchmarks/eic.py --peers    # BoTorch's rows
    .venv/bin/python benchmarks/eic.py                  # Calamint's rows, then the table

Both append to `results/eic.csv` and go on where they stopped.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import harness
from calamint.testbed import SolvedProblem, toy

RESULTS = Path(__file__).parent / "results"
EVALUATIONS = 27


def coupled_toy(seed: int) -> SolvedProblem:  # noqa: ARG001 - the same problem for every seed
    return toy().coupled()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--peers", action="store_true", help="run the peers, not Calamint")
    parser.add_argument("--repetitions", type=int, default=20)
    options = parser.parse_args()
    makers: dict[str, harness.Make] = {}
    if options.peers:
        from peers import BoTorchLogCEI, PeerMaker

        makers["BoTorch LogCEI"] = PeerMaker(BoTorchLogCEI)
    else:
        from calamint import Model
        from contestants import CalamintMaker

        makers["EIC, sampled"] = CalamintMaker()
        makers["EIC, sampled, observed"] = CalamintMaker(kind="observed")
        makers["EIC, MAP"] = CalamintMaker(model=Model(hyperparameters="map", transform="none"))
    entries = [
        harness.Entry("toy", name, coupled_toy, make, EVALUATIONS) for name, make in makers.items()
    ]
    path = RESULTS / "eic.csv"
    harness.run(entries, range(options.repetitions), path)
    table = harness.table(harness.summarise(harness.read(path), at=[12, 15, 18, 21, 24, 27]))
    print(table)
    (RESULTS / "eic.md").write_text(f"# EIC on the toy problem, coupled\n\n{__doc__}\n{table}\n")


if __name__ == "__main__":
    main()
