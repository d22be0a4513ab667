"""Every plot and the report of four studies, as a browser shows them.

    .venv-peers/bin/python benchmarks/gallery.py            # into build/gallery
    .venv-peers/bin/python benchmarks/gallery.py --pictures # those of README and docs

The studies: the toy problem with a task for each function; the network of `real.py`; a binary
constraint with jobs that fail; and a study of two jobs. Needs Chromium.
"""

import argparse
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import calamint as cm
from calamint.show import write_report
from calamint.testbed import CLASSIC

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "gallery"
PICTURES = ROOT / "docs" / "figures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--virtual-time-budget=20000"),
)


def toy(storage: str, evaluations: int = 60) -> cm.Study:
    solved = CLASSIC["toy"]()
    names = list(solved.problem.functions)
    problem = solved.problem.changed(
        tasks={
            name: cm.Task([name], runs_on="bench", cost=3.0 if name == "f" else 1.0)
            for name in names
        },
        resources={"bench": 2},
    )
    clock = cm.VirtualClock()
    study = cm.Study(problem, storage, "toy", seed=0, rationality=1.0, clock=clock)
    durations = {"f": 60.0, "c1": 20.0, "c2": 25.0}

    def measure(name: str) -> Callable[[Mapping[str, Any]], float]:
        return lambda params: solved.evaluate(params)[name]

    study.run(
        {name: measure(name) for name in names},
        evaluations=evaluations,
        confirm=3 if evaluations == 60 else 0,
        executor=cm.Simulated(durations, clock),
    )
    return study


def network(storage: str) -> cm.Study:
    from real_tasks import TASKS

    task = TASKS["network"]
    study = cm.Study(task.problem, storage, "network", seed=0)
    measures = {name: each.measures for name, each in task.problem.tasks.items()}

    def measure(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], dict[str, float]]:
        return lambda params: {name: task.measure(params, 0)[name] for name in names}

    study.run(
        {name: measure(each) for name, each in measures.items()},
        evaluations=task.evaluations * len(measures),
        confirm=1,
        executor=cm.InProcess(),
    )
    return study


def binary(storage: str) -> cm.Study:
    problem = cm.Problem(
        {
            "temperature": cm.Real(20, 120),
            "catalyst": cm.Choice("none", "zeolite", "palladium"),
            "hours": cm.Integer(1, 24),
        },
        maximize="yield_percent",
        constraints=[cm.Constraint("crystallises", binary=True), "cost_eur <= 60"],
        tasks={
            "synthesise": cm.Task(
                ["yield_percent", "crystallises"], runs_on="chemist", failures="model"
            ),
            "quote": cm.Task(["cost_eur"], runs_on="chemist", cost=0.1),
        },
        resources={"chemist": 1},
    )

    def synthesise(params: Mapping[str, Any]) -> dict[str, float]:
        heat = params["temperature"] / 100
        if heat > 1.05:
            raise RuntimeError("the solvent boiled over")
        bonus = {"none": 0.0, "zeolite": 12.0, "palladium": 25.0}[params["catalyst"]]
        made = 60 * math.exp(-((heat - 0.8) ** 2) / 0.08) + bonus + 0.3 * params["hours"]
        return {"yield_percent": made, "crystallises": heat + 0.01 * params["hours"] < 0.95}

    def quote(params: Mapping[str, Any]) -> dict[str, float]:
        price = {"none": 5.0, "zeolite": 15.0, "palladium": 45.0}[params["catalyst"]]
        return {"cost_eur": price + 1.2 * params["hours"]}

    clock = cm.VirtualClock()
    study = cm.Study(problem, storage, "synthesis", seed=0, clock=clock)
    tasks = {"synthesise": synthesise, "quote": quote}
    durations = {"synthesise": 7200.0, "quote": 600.0}
    study.run(tasks, evaluations=40, executor=cm.Simulated(durations, clock))
    return study


def two_jobs(storage: str) -> cm.Study:
    solved = CLASSIC["gardner1"]()
    study = cm.Study(solved.problem, storage, "two jobs", seed=0)
    for _ in range(2):
        job = study.ask()
        assert job is not None
        found = solved.evaluate(job.params)
        study.tell(job, {name: found[name] for name in solved.problem.tasks[job.task].measures})
    study.ask()
    return study


STUDIES: dict[str, Callable[[str], cm.Study]] = {
    "toy": toy,
    "network": network,
    "binary": binary,
    "two_jobs": two_jobs,
}


def built(name: str) -> cm.Study:
    """The study, run if it is not there yet."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.db"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        STUDIES[name](f"sqlite:///{unfinished}").database.close()
        unfinished.rename(path)
    os.chdir(FOLDER)  # where it is stored is on the first page
    return cm.Study.load(f"sqlite:///{path.name}")


def screenshot(page: Path, picture: Path, width: int, dark: bool, height: int = 14000) -> None:
    browser = next(found for each in BROWSERS if (found := shutil.which(each)))
    shade = ["--blink-settings=preferredColorScheme=0"] if dark else []
    with tempfile.TemporaryDirectory() as profile:
        # Windows cannot be as narrow as telephones, frames can.
        frame = page.with_suffix(".frame.html")
        style = f"border:0;width:{width}px;height:{height}px"
        frame.write_text(f'<body style="margin:0"><iframe src="{page.name}" style="{style}">')
        size = f"--window-size={max(width, 600)},{height}"
        subprocess.run(
            [
                *(browser, *FLAGS, *shade, f"--user-data-dir={profile}"),
                *(size, f"--screenshot={picture}", frame.as_uri()),
            ],
            check=True,
            capture_output=True,
            timeout=180,
        )
        frame.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description="Every plot of four studies, in a browser.")
    parser.add_argument("--pictures", action="store_true", help="only those of README and docs")
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=list(STUDIES))
    options = parser.parse_args()
    if options.pictures:
        pictures()
        return
    for name in options.studies:
        page = write_report(built(name), FOLDER / f"{name}.html")
        print(f"{page}: {page.stat().st_size / 1e6:.1f} MB", flush=True)
        for width in (400, 1280):
            for dark in (False, True):
                shade = "dark" if dark else "light"
                screenshot(page, FOLDER / f"{name}-{width}-{shade}.png", width, dark)


def pictures() -> None:
    """Those of README and docs."""
    toy_study = built("toy")
    toy_study.plots.progress().save(PICTURES / "plot_progress.png")
    toy_study.plots.decisions().save(PICTURES / "plot_decisions.png")
    toy("sqlite://", evaluations=24).plots.explain().save(PICTURES / "plot_explain.png")
    binary_study = built("binary")
    binary_study.plots.timeline().save(PICTURES / "plot_timeline.png")
    network_study = built("network")
    network_study.plots.trust().save(PICTURES / "plot_trust.png")
    network_study.plots.contours().save(PICTURES / "plot_contours.png")
    page = write_report(network_study, FOLDER / "network.html")
    screenshot(page, PICTURES / "report.png", 1000, dark=False, height=1150)


if __name__ == "__main__":
    main()
