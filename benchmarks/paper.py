"""Every experiment of the paper, run again.

    .venv/bin/python benchmarks/paper.py                          # all, as `make paper`
    .venv/bin/python benchmarks/paper.py fig8 --repetitions 500   # one, as often as the paper
    .venv/bin/python benchmarks/paper.py fig8 --summarise         # only tables and pictures

Each figure appends its rows to `results/NAME.csv` and goes on where it stopped; its tables are
beside it, its picture is `docs/figures/NAME.png`. Figures that take times run alone, one repetition
after the other.
"""

import argparse
import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from figures import approximation, learning, separately, together
from figures.figure import Figure

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        approximation.FIG2,
        approximation.FIG3AB,
        together.FIG3C,
        together.FIG4A,
        together.FIG4B,
        together.FIG5,
        learning.FIG6A,
        learning.FIG6B,
        approximation.FIG7,
        separately.FIG8,
        separately.FIG9,
        separately.FIG10,
        separately.FIG10_VIRTUAL,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Every experiment of the paper, run again.")
    parser.add_argument("figures", nargs="*", metavar="figure", help=", ".join(FIGURES))
    parser.add_argument("--repetitions", type=int, help="by default what each figure says")
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    parser.add_argument("--summarise", action="store_true", help="run nothing")
    options = parser.parse_args()
    if unknown := set(options.figures) - set(FIGURES):
        parser.error(f"no figure {sorted(unknown)[0]!r}: choose from {', '.join(FIGURES)}")
    for name in options.figures or FIGURES:
        if not options.summarise:
            FIGURES[name].run(options.repetitions, options.processes)
        FIGURES[name].write()


if __name__ == "__main__":
    main()
