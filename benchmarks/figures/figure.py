"""What every figure has: how it is run, where its rows are, and how it is reported."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rows

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PICTURES = ROOT / "docs" / "figures"


@dataclass(frozen=True)
class Figure:
    """One figure of the paper.

    Attributes:
        name: Such as "fig8": its files are `results/fig8.csv` and `.md`, and
            `docs/figures/fig8.png`.
        protocol: What is run, in a few sentences.
        report: Draws the picture and returns tables, given the rows.
        methods: What is compared; none for a picture of a single model.
        work: (method, seed) -> the rows of one repetition; picklable.
        kind: The class of its rows, which have `method` and `seed`.
        repetitions: By default.
        alone: Whether it takes times, and has to run alone on the machine.
    """

    name: str
    protocol: str
    report: Callable[[list[Any]], str]
    methods: tuple[str, ...] = ()
    work: Callable[[str, int], list[Any]] | None = None
    kind: type[Any] | None = None
    repetitions: int = 30
    alone: bool = False

    @property
    def path(self) -> Path:
        return RESULTS / f"{self.name}.csv"

    def rows(self) -> list[Any]:
        return [] if self.kind is None else rows.read(self.path, self.kind)

    def run(self, repetitions: int | None = None, processes: int | None = None) -> None:
        """Run what is missing, and append it."""
        if self.work is None:
            return
        done = {(row.method, row.seed) for row in self.rows()}
        jobs: dict[str, rows.Job] = {
            f"{self.name} {method} seed {seed}": (self.work, (method, seed))
            for seed in range(repetitions or self.repetitions)
            for method in self.methods
            if (method, seed) not in done
        }
        print(f"{self.name}: {len(jobs)} repetitions to run", flush=True)
        rows.gather(jobs, self.path, 1 if self.alone else processes)

    def write(self) -> None:
        """Draw it, print its tables, and write them beside the rows."""
        text = self.report(self.rows())
        again = f"    .venv/bin/python benchmarks/paper.py {self.name}"
        picture = f"![{self.name}](../../docs/figures/{self.name}.png)"
        page = f"# {self.name}\n\n{self.protocol}\n\n{again}\n\n{picture}\n\n{text}\n"
        self.path.with_suffix(".md").write_text(page)
        print(page)
