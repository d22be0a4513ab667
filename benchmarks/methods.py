"""All methods side by side: the toy problem, draws from a prior, and the toy problem in parts.

    .venv/bin/python benchmarks/methods.py [--repetitions 20] [--problems toy]

From the same three starts. Toy: noise-free, one estimate of the hyper-parameters (MAP), everything
measured at once. GP prior 2-D: noise 0.1, hyper-parameters known. Toy in parts: one function at a
time, for methods that choose between functions. Gaps are those of the recommendation (δ = 0.05).
Appends to `results/methods.csv`, goes on where it stopped, writes `results/methods.md` and
`results/methods.png`. Decisions are timed at the end, one at a time.
"""

import os
import statistics
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import harness
from calamint import Model
from calamint.acquire import ACQUISITIONS, EICD
from calamint.testbed import CLASSIC, SolvedProblem, gp_prior
from contestants import CalamintMaker
from curves import Curve, curve, draw_panels
from starts import starting_points

RESULTS = Path(__file__).parent / "results"
POINT = Model(hyperparameters="map", transform="none")
PRIOR = Model("se", "map", lengthscale=0.1, amplitude=1.0, noise_variance=0.01)
TITLES = {
    "pesc": "PESC",
    "eic": "EIC",
    "eicd": "EIC-CD",
    "ieci": "IECI",
    "ev": "EV",
    "auglag": "AL",
    "thompson": "Thompson",
    "rs": "RS",
    "rsdg": "RSDG",
    "random": "random",
}
COLORS = {
    "PESC": "#c0392b",
    "EIC": "#1f3a5f",
    "EIC-CD": "#2e7d6b",
    "IECI": "#8e6bb0",
    "EV": "#d98a1f",
    "AL": "#4a90c2",
    "Thompson": "#7a8ba0",
    "RS": "#b3541e",
    "RSDG": "#e3a6a0",
    "random": "#bbbbbb",
    "AL, f known": "#88c9d4",
    "EIC-CD, original": "#9bcf8f",
}


def toy(seed: int) -> SolvedProblem:  # noqa: ARG001 - the same problem for every seed
    return CLASSIC["toy"]().coupled()


def toy_in_parts(seed: int) -> SolvedProblem:  # noqa: ARG001
    return CLASSIC["toy"]()


def toy_known(seed: int) -> SolvedProblem:
    """The objective given, as the paper gives it to the augmented Lagrangian."""
    solved = toy(seed)
    problem = solved.problem.changed(
        tasks=None, known={"f": lambda params: params["x1"] + params["x2"]}
    )
    return replace(solved, problem=problem)


def prior_2d(seed: int) -> SolvedProblem:
    return gp_prior(2, seed).coupled()


def entries() -> dict[str, list[harness.Entry]]:
    together = [name for name in ACQUISITIONS if name != "eicd"]  # with one task it is EIC
    parts = ("pesc", "eicd", "random")
    toys = [
        harness.Entry("toy", TITLES[name], toy, CalamintMaker(name, POINT), 27) for name in together
    ]
    known = CalamintMaker("auglag", POINT)
    toys.append(harness.Entry("toy", "AL, f known", toy_known, known, 27))
    draws = [
        harness.Entry("GP prior 2-D", TITLES[name], prior_2d, CalamintMaker(name, PRIOR), 30)
        for name in together
    ]
    separate = [
        harness.Entry("toy in parts", TITLES[name], toy_in_parts, CalamintMaker(name, POINT), 60)
        for name in parts
    ]
    original = CalamintMaker(EICD("monte carlo"), POINT)
    separate.append(harness.Entry("toy in parts", "EIC-CD, original", toy_in_parts, original, 60))
    return {"toy": toys, "prior": draws, "parts": separate}


LOOKS = {"toy": (12, 18, 24, 27), "GP prior 2-D": (10, 20, 30), "toy in parts": (30, 45, 60)}


def draw(rows: list[harness.Row]) -> None:
    """Median gaps by evaluations, one panel for each problem."""
    panels: dict[str, dict[str, Curve]] = {}
    for problem in LOOKS:
        for method in COLORS:
            own = [row for row in rows if (row.problem, row.method) == (problem, method)]
            if own:
                found = curve((row.evaluation, row.gap) for row in own)
                panels.setdefault(problem, {})[method] = found
    draw_panels(panels, COLORS, RESULTS / "methods.png", bold="PESC")


def decision_times() -> str:
    """Medians of five decisions of every method after 20 evaluations of the toy problem."""
    lines = ["| method | median decision, ms | lowest – highest |", "|---|---|---|"]
    for entry in entries()["toy"]:
        assert isinstance(entry.make, CalamintMaker)
        times = []
        for seed in range(5):
            solved = entry.solved(seed)
            made = replace(entry.make, starts=0)(solved, seed)
            for params in starting_points(solved, seed, 20):
                made.optimizer.add(params, solved.evaluate(params, *solved.problem.tasks))
            made.ask()
            times.append(1000 * made.optimizer.decisions[-1].stage_seconds["total"])
        median = statistics.median(times)
        lines.append(f"| {entry.method} | {median:.0f} | {min(times):.0f} – {max(times):.0f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    path = RESULTS / "methods.csv"
    rows, table = harness.main("All methods side by side.", entries(), LOOKS, path, tolerance=1e-6)
    print(table)
    draw(rows)
    (RESULTS / "methods.md").write_text(
        f"# All methods\n\n{__doc__}\n![median gaps](methods.png)\n\n{table}\n\n"
        f"## Decisions, toy problem at N = 20, MAP\n\n{decision_times()}\n"
    )


if __name__ == "__main__":
    main()
