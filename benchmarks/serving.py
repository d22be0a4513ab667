"""How quickly a server answers: pages of large studies, and many programs at once.

    .venv/bin/python benchmarks/serving.py

Pages: of a study of 2,000 jobs that were decided by PESC, with seven parameters and three
functions, and lists of one of 50,000 jobs; how long each takes the first time, and the longest of
ten more, while figures are computed on the other core; and after what time the last figure of a
page is there. Programs: 16 that ask and tell over HTTP for 30 seconds with random suggestions, 16
places and six parameters, beside 16 processes that use the storage directly, in the same run.
SQLite in a file, and a real PostgreSQL server. Writes `results/serving.md`. Run it alone.
"""

import argparse
import html
import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import calamint as cm
from showing import made
from storage import NAMES, STORAGES, fill_calamint, places, value

RESULTS = Path(__file__).parent / "results"
PROGRAMS = 16
SECONDS = 30.0
LARGE, HUGE = 2000, 50_000
PAGES = {
    "studies": "/",
    "overview": "/studies/1",
    "jobs": "/studies/1/jobs",
    "jobs by value": "/studies/1/jobs?order=loss",
    "a job": "/studies/1/jobs/1500",
    "a form": "/studies/1/jobs/1500/amend",
    "beliefs": "/studies/1/beliefs",
    "decisions": "/studies/1/decisions",
    "resources": "/studies/1/resources",
    "trust": "/studies/1/trust",
    "changes": "/studies/1/changes?everything=true",
}
LISTS = {
    "jobs": "/studies/1/jobs",
    "by value": "/studies/1/jobs?order=f",
    "by value, descending": "/studies/1/jobs?order=f&descending=true",
    "by duration": "/studies/1/jobs?order=seconds",
    "of one state": "/studies/1/jobs?state=done",
    "in the middle": "/studies/1/jobs?page=500",
    "last page": "/studies/1/jobs?page=1000",
    "by value, last page": "/studies/1/jobs?order=f&page=1000",
    "a job": "/studies/1/jobs/49000",
    "overview": "/studies/1",
    "decisions": "/studies/1/decisions",
    "changes": "/studies/1/changes?everything=true&page=1900",
    "API: 1,000 jobs": "/api/studies/1/jobs?limit=1000&offset=49000",
}


@contextmanager
def server(url: str) -> Iterator[tuple[str, int]]:
    """Host and port of one that has just been started."""
    words = ["serve", "--port", "0", "--rate", "100000", "--storage", url]
    process = subprocess.Popen(
        [sys.executable, "-m", "calamint", *words], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://(.+):(\d+)", process.stdout.readline())
        assert found is not None
        yield found[1], int(found[2])
    finally:
        process.terminate()
        process.wait(60)


def get(address: tuple[str, int], path: str) -> tuple[float, str]:
    """Seconds, and the page."""
    begin = time.perf_counter()
    connection = http.client.HTTPConnection(*address, timeout=600)
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status in (200, 204), (path, response.status)
    return time.perf_counter() - begin, text


# -- pages -----------------------------------------------------------------------------------------


def pages(url: str, paths: dict[str, str], title: str) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield "| page | first, s | longest of ten more, s | kB | all figures there after, s |"
    yield "|---|---|---|---|---|"
    with server(url) as address:
        for name, path in paths.items():
            first, page = get(address, path)
            longest = max(get(address, path)[0] for _ in range(10))
            size = f"{len(page) / 1000:.0f}"
            yield f"| {name} | {first:.3f} | {longest:.3f} | {size} | {drawn(address, path)} |"


def drawn(address: tuple[str, int], path: str) -> str:
    """Seconds until every figure that a page asks for is there."""
    begin = time.perf_counter()
    _, page = get(address, path)
    wanted = [
        # As one that has no figure, not even an empty one: news are all that is sent otherwise.
        html.unescape(each).replace("have=-1", "have=-2")
        for each in re.findall(r'hx-get="([^"]*/drawn/[^"]*)"', page)
    ]
    if not wanted:
        return "–"
    while wanted:
        time.sleep(0.1)
        wanted = [each for each in wanted if "Computing" in get(address, each)[1]]
    return f"{time.perf_counter() - begin:.0f}"


# -- programs --------------------------------------------------------------------------------------

Timed = Callable[[], tuple[float, float] | None]
PROBLEM = cm.Problem({name: cm.Real(0, 1) for name in NAMES}, "f", resources={"here": PROGRAMS})


def on_storage(place: str) -> Any:
    return cm.Study(PROBLEM, place, acquisition="random", initial=0, seed=0)


def over_http(place: str) -> Any:
    return cm.connect(place)


def work(opening: Callable[[str], Any], place: str, ready: Barrier, answers: Any) -> None:
    study = opening(place)
    asking, telling = [], []
    ready.wait()
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        begin = time.perf_counter()
        job = study.ask()
        asked = time.perf_counter()
        if job is None:
            time.sleep(0.001)
            continue
        study.tell(job, {"f": value(job.params)})
        asking.append(asked - begin)
        telling.append(time.perf_counter() - asked)
    answers.put((asking, telling))


def load(opening: Callable[[str], Any], place: str) -> tuple[list[float], list[float]]:
    """Seconds of every ask and every tell of all programs."""
    context = get_context("spawn")
    ready, answers = context.Barrier(PROGRAMS), context.Queue()
    programs = [
        context.Process(target=work, args=(opening, place, ready, answers)) for _ in range(PROGRAMS)
    ]
    for program in programs:
        program.start()
    found = [answers.get() for _ in programs]
    for program in programs:
        program.join()
    return [each for asking, _ in found for each in asking], [
        each for _, telling in found for each in telling
    ]


def loads(new: Callable[[str], str]) -> Iterator[str]:
    yield from ("", f"## {PROGRAMS} programs at once", "")
    percentiles = (50, 95, 99)
    header = "".join(f" | {verb}, {p} %, ms" for verb in ("ask", "tell") for p in percentiles)
    yield f"| storage | through | pairs a second{header} | longest, ms |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for storage in STORAGES:
        direct, served = new(storage), new(storage)
        on_storage(served)
        yield row(storage, "the storage", *load(on_storage, direct))
        with server(served) as (host, port):
            yield row(storage, "HTTP", *load(over_http, f"http://{host}:{port}"))


def row(storage: str, through: str, asking: list[float], telling: list[float]) -> str:
    times = [
        f"{1000 * np.percentile(each, p):.1f}" for each in (asking, telling) for p in (50, 95, 99)
    ]
    longest = f"{1000 * max(*asking, *telling):.0f}"
    return " | ".join(
        ("| " + storage, through, f"{len(asking) / SECONDS:.1f}", *times, f"{longest} |")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="How quickly a server answers.")
    parser.add_argument("--only", choices=("pages", "lists", "programs"), help="part, unwritten")
    only = parser.parse_args().only
    lines: list[str] = []

    def say(rows: Iterator[str]) -> None:
        for line in rows:
            lines.append(line)
            print(line, flush=True)

    with tempfile.TemporaryDirectory() as folder, places() as new:
        if only in (None, "pages"):
            settings = {"model": cm.Model(hyperparameters="map"), "rationality": 0.02}
            url = made(Path(folder) / "large.db", LARGE, **settings)
            say(pages(url, PAGES, f"Pages of a study of {LARGE:,} jobs"))
        if only in (None, "lists"):
            for storage in STORAGES:
                url = new(storage)
                fill_calamint(url, HUGE)
                title = f"Lists of a study of {HUGE:,} jobs on {storage}"
                say(pages(url, LISTS, title))
        if only in (None, "programs"):
            say(loads(new))
    if only is None:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        ).stdout.strip()
        table = "\n".join(lines)
        text = f"# Serving\n\n{__doc__}\nAt {commit}.\n{table}\n"
        (RESULTS / "serving.md").write_text(text)


if __name__ == "__main__":
    main()
