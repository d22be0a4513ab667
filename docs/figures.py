"""The figures of these pages, drawn again.

    .venv/bin/python docs/figures.py

Needs Plotly, Kaleido and Chrome or Chromium.
"""

import math
from pathlib import Path

import calamint as cm

HERE = Path(__file__).parent


def methods() -> None:
    """`methods.png`: every method on one problem with one parameter."""
    problem = cm.Problem({"x": cm.Real(0, 1)}, minimize="f", constraints=["c >= 0"])
    optimizer = cm.Optimizer(problem, seed=3)
    for x in (0.05, 0.3, 0.55, 0.8, 0.95):
        f = math.sin(9 * x) + 0.8 * x
        optimizer.add({"x": x}, {"f": f, "c": math.cos(7 * x) + 0.2})
    cm.plots.compare(optimizer).save(HERE / "methods.png")


if __name__ == "__main__":
    methods()
