"""Constraints that are only judged, and inputs that crash.

    .venv/bin/python benchmarks/binary.py [--repetitions 20] [--problems toy gardner2 crashes]

Toy and Gardner 2: the constraint c1 (c) is measured as pass or fail, all at once, noise-free, and
hyper-parameters are sampled; PESC and EIC from the same three starts with the same model.
Crashes: two hollows in a square; everything fails on a disc of 40 % of it around the deeper one.
PESC on that, and on the same function where nothing fails, whose optimum is the deeper hollow; both
without noise, where gaps end in rounding errors, and with noise of 0.05.
Gaps are those of the recommendation (δ = 0.05). Appends to `results/outcomes.csv`, goes on where it
stopped, and writes `results/outcomes.md`.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import harness
from calamint import Model, Problem, Real
from calamint.arrays import Array
from calamint.testbed import CLASSIC, SolvedProblem
from contestants import CalamintMaker

RESULTS = Path(__file__).parent / "results"
SAMPLED = Model(transform="none")
DEEP, SHALLOW = (0.4, 0.4), (0.85, 0.8)
RADIUS = math.sqrt(0.4 / math.pi)
NOISE = 0.05  # the deeper hollow has a depth of 1
LEARNING = 20  # evaluations after which failures should be rare


def toy(seed: int) -> SolvedProblem:  # noqa: ARG001 - the same problem for every seed
    return CLASSIC["toy"]().coupled().with_binary("c1")


def gardner2(seed: int) -> SolvedProblem:  # noqa: ARG001
    return CLASSIC["gardner2"]().coupled().with_binary("c")


def hollows(x: Array) -> Array:
    """Two hollows, at DEEP and at SHALLOW."""
    deep, shallow = (((x - np.array(place)) ** 2).sum(-1) for place in (DEEP, SHALLOW))
    return -np.exp(-deep / 0.03) - 0.7 * np.exp(-shallow / 0.04)


def crashing(x: Array) -> Array:
    inside = ((x - np.array(DEEP)) ** 2).sum(-1) < RADIUS**2
    return np.where(inside, np.nan, hollows(x))


def smooth_noisy(seed: int) -> SolvedProblem:
    return replace(smooth(seed), noise_std=NOISE)


def crashes_noisy(seed: int) -> SolvedProblem:
    return replace(crashes(seed), noise_std=NOISE)


def smooth(seed: int) -> SolvedProblem:  # noqa: ARG001
    problem = Problem({"x": Real(0, 1), "y": Real(0, 1)}, minimize="f")
    # The optima to the digits that matter: each hollow is moved a little by the other.
    best = {"x": 0.40002742, "y": 0.40002437}
    return SolvedProblem("smooth", problem, {"f": hollows}, best, _value(best), 0.0)


def crashes(seed: int) -> SolvedProblem:  # noqa: ARG001
    problem = Problem({"x": Real(0, 1), "y": Real(0, 1)}, minimize="f")
    best = {"x": 0.84999515, "y": 0.79999569}
    return SolvedProblem("crashes", problem, {"f": crashing}, best, _value(best), 0.0)


def _value(params: dict[str, float]) -> float:
    return float(hollows(np.array(list(params.values()))))


def entries() -> dict[str, list[harness.Entry]]:
    judged = {
        name: [
            harness.Entry(f"{name}, judged", method.upper(), solved, CalamintMaker(method), 60)
            for method in ("pesc", "eic")
        ]
        for name, solved in (("toy", toy), ("gardner2", gardner2))
    }
    own_start = CalamintMaker("pesc", starts=0, initial=None)
    failing = [
        harness.Entry(name, "PESC", solved, own_start, 40)
        for name, solved in (
            ("crashes", crashes),
            ("no crashes", smooth),
            ("crashes, noisy", crashes_noisy),
            ("no crashes, noisy", smooth_noisy),
        )
    ]
    return {**judged, "crashes": failing}


LOOKS = {
    "toy, judged": (20, 40, 60),
    "gardner2, judged": (20, 40, 60),
    "crashes": (20, 30, 40),
    "no crashes": (20, 30, 40),
    "crashes, noisy": (20, 30, 40),
    "no crashes, noisy": (20, 30, 40),
}


def failures(rows: Sequence[harness.Row]) -> str:
    """How many suggestions failed, early and late."""
    lines = []
    for name in ("crashes", "crashes, noisy"):
        failed: dict[bool, list[bool]] = {False: [], True: []}
        for row in rows:
            if row.problem == name:
                failed[row.evaluation > LEARNING].append("NaN" in row.values)
        if failed[True]:
            early, late = (float(np.mean(failed[when])) for when in (False, True))
            lines.append(
                f"{name}: of the first {LEARNING} suggestions {early:.0%} failed, of the later ones"
                f" {late:.1%} ({sum(failed[True])} of {len(failed[True])})."
            )
    return "\n\n".join(lines)


def discs(rows: Sequence[harness.Row]) -> str:
    """Gardner 2 by the disc that was found: its feasible set is two of 0.9 % of the box each."""
    last = [row for row in rows if row.problem == "gardner2, judged" and row.evaluation == 60]
    lines = []
    for method in sorted({row.method for row in last}):
        gaps = [row.gap for row in last if row.method == method]
        lower = [gap for gap in gaps if gap < 1]
        upper = [gap for gap in gaps if 1 <= gap < 6]
        lines.append(
            f"gardner2, {method}: {len(gaps) - len(lower) - len(upper)} of {len(gaps)} runs saw no"
            f" input pass; {len(upper)} ended in the upper disc, with a median gap of"
            f" {np.median(upper):.2f}, {len(lower)} in the lower one, which holds the optimum, with"
            f" {np.median(lower):.3f}."
        )
    return "\n\n".join(lines)


def main() -> None:
    path = RESULTS / "binary.csv"
    rows, table = harness.main("Outcomes and failures.", entries(), LOOKS, path)
    text = f"{table}\n\n{discs(rows)}\n\n{failures(rows)}\n"
    print(text)
    (RESULTS / "binary.md").write_text(f"# Binary constraints and failures\n\n{__doc__}\n{text}")


if __name__ == "__main__":
    main()
