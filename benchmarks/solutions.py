"""How many x* should a decision draw? Gaps with 5, 10, 20, 50 and the default, which draws more
while they differ, from the same starts.

    .venv/bin/python benchmarks/solutions.py                       # 20 repetitions
    .venv/bin/python benchmarks/solutions.py --problems toy --solutions 5 default

    git worktree add ../before 718f4c2
    PYTHONPATH=../before/src .venv/bin/python benchmarks/solutions.py --label before
    .venv-peers/bin/python benchmarks/solutions.py --problems network --solutions default
    PYTHONPATH=../before/src .venv-peers/bin/python benchmarks/solutions.py --problems network \\
        --label before

"before" is the default of another commit. The network is that of `real.py`: its numbers are not
gaps but retrained errors in percent of the confirmed answer, 100 if it is infeasible. Rows are
appended to `results/solutions.csv`; running again goes on where it stopped.

Default model (draws from a prior: its hyper-parameters are known), δ = 0.05; evaluations measure
everything, decoupled ones a single function. Gaps are those of the believed optimum. A ratio is
that of two gaps of one seed, the second with the default, and its interval that of the median,
bootstrapped: below one, fewer or more x*, or the other commit, came closer.
"""

import argparse
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import harness
import rows
from calamint import Model
from calamint.acquire import PESC
from calamint.testbed import SolvedProblem, gp_prior
from contestants import CalamintMaker
from curves import Curve, curve, draw_panels
from harness import GapRow
from pilot import Coupled

RESULTS = Path(__file__).parent / "results"
DEFAULT = "default"
COLORS = {
    "5": "#d98a1f",
    "10": "#7a8ba0",
    "20": "#2e7d6b",
    "50": "#1f3a5f",
    DEFAULT: "#c0392b",
    "before": "#bbbbbb",
}
COUNTS = ("5", "10", "20", "50", DEFAULT)
EVERY = 5
NETWORK = "network"
SMALLEST = 1e-9  # gaps below it are equal
PRIOR = Model("se", "map", lengthscale=0.1, amplitude=1.0, noise_variance=0.01)


def prior_together(seed: int) -> SolvedProblem:
    return gp_prior(2, seed).coupled()


def prior_decoupled(seed: int) -> SolvedProblem:
    return gp_prior(2, seed)


@dataclass(frozen=True)
class Setup:
    """A problem, its model, given starts, evaluations, and after how many of them to look."""

    solved: Callable[[int], SolvedProblem]
    model: Model
    starts: int
    evaluations: int
    looks: tuple[int, ...]


SETUPS = {
    "toy": Setup(Coupled("toy"), Model(), 3, 25, (15, 25)),
    "branin": Setup(Coupled("branin"), Model(), 3, 30, (15, 30)),
    "gardner1": Setup(Coupled("gardner1"), Model(), 3, 30, (15, 30)),
    "mystery": Setup(Coupled("mystery"), Model(), 3, 30, (15, 30)),
    "hartmann6": Setup(Coupled("hartmann6"), Model(), 7, 50, (30, 50)),
    "GP prior 2-D": Setup(prior_together, PRIOR, 3, 30, (15, 30)),
    "GP prior 2-D, decoupled": Setup(prior_decoupled, PRIOR, 3, 60, (30, 60)),
}


def repetition(problem: str, method: str, seed: int) -> list[GapRow]:
    if problem == NETWORK:
        import real

        (row,) = real.repetition(NETWORK, "auto", seed)
        return [GapRow(NETWORK, method, seed, 30, row.true if row.feasible else 100.0)]
    setup = SETUPS[problem]
    pesc = PESC(solutions=int(method)) if method.isdigit() else PESC()
    make = CalamintMaker(pesc, setup.model, setup.starts)
    entry = harness.Entry(problem, method, setup.solved, make, setup.evaluations)
    return harness.gaps(entry, seed, EVERY)


def table(found: list[GapRow]) -> str:
    methods = sorted({row.method for row in found}, key=lambda method: (len(method), method))
    lines = [
        "| problem | evaluations | x* | repetitions | median gap | 95 % interval |"
        " ratio to the default | 95 % interval |",
        "|---|---|---|---|---|---|---|---|",
    ]
    looks = {**{problem: setup.looks for problem, setup in SETUPS.items()}, NETWORK: (30,)}
    for problem, moments in looks.items():
        for look in moments:
            gaps = {
                method: {
                    row.seed: max(row.gap, SMALLEST)
                    for row in found
                    if (row.problem, row.evaluation, row.method) == (problem, look, method)
                }
                for method in methods
            }
            for method, own in gaps.items():
                if own:
                    numbers = f"{_interval(own.values())} | {_ratio(own, gaps.get(DEFAULT, {}))}"
                    lines.append(f"| {problem} | {look} | {method} | {len(own)} | {numbers} |")
    return "\n".join(lines)


def draw(found: list[GapRow]) -> None:
    """Median gaps by evaluations, one panel for each problem."""
    panels: dict[str, dict[str, Curve]] = {}
    for problem in SETUPS:
        for method in COLORS:
            own = [row for row in found if (row.problem, row.method) == (problem, method)]
            if own:
                gaps = curve((row.evaluation, row.gap) for row in own)
                panels.setdefault(problem, {})[_title(method)] = gaps
    colors = {_title(method): color for method, color in COLORS.items()}
    draw_panels(panels, colors, RESULTS / "solutions.png", bold=DEFAULT)


def _title(method: str) -> str:
    return f"{method} x*" if method.isdigit() else method


def _interval(values: Iterable[float]) -> str:
    median, low, high = rows.median_interval(values)
    return f"{median:.2e} | {low:.1e} – {high:.1e}"


def _ratio(own: dict[int, float], default: dict[int, float]) -> str:
    both = sorted(set(own) & set(default))
    if not both or own is default:
        return "– | –"
    logarithms = [np.log(own[seed] / default[seed]) for seed in both]
    median, low, high = np.exp(rows.median_interval(logarithms))
    return f"{median:.2f} | {low:.2f} – {high:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Gaps by the number of drawn x*.")
    parser.add_argument("--repetitions", type=int, default=20)
    known = [*SETUPS, NETWORK]
    parser.add_argument("--problems", nargs="+", choices=known, default=list(SETUPS))
    parser.add_argument("--solutions", nargs="+", choices=COUNTS, default=list(COUNTS))
    parser.add_argument("--label", help="run only the default, and call it so")
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    parser.add_argument("--summarise", action="store_true", help="run nothing")
    options = parser.parse_args()
    path = RESULTS / "solutions.csv"
    methods = [options.label] if options.label else options.solutions
    done = {(row.problem, row.method, row.seed) for row in rows.read(path, GapRow)}
    jobs = {
        f"{problem}, {method} x*, seed {seed}": (repetition, (problem, method, seed))
        for seed in range(options.repetitions)
        for problem in options.problems
        for method in methods
        if (problem, method, seed) not in done
    }
    if not options.summarise:
        rows.gather(jobs, path, options.processes, tell=lambda found: f"gap {found[-1].gap:.2e}")
    found = rows.read(path, GapRow)
    text = table(found)
    print(text)
    try:
        draw(found)
    except ImportError:  # the peers' environment has no Plotly
        print("no picture was drawn: run --summarise with .venv")
    (RESULTS / "solutions.md").write_text(
        f"# The number of drawn x*\n\n{__doc__}\n![median gaps](solutions.png)\n\n{text}\n"
    )


if __name__ == "__main__":
    main()
