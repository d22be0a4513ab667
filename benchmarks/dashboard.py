"""The dashboard's pages about a study that runs, as a browser shows them.

    .venv/bin/python benchmarks/dashboard.py            # every page, into build/dashboard
    .venv/bin/python benchmarks/dashboard.py --pictures # those of README and docs

The study is that of `examples/train_and_profile.py`, which trains a network of each size on one
machine and profiles it on any of two; it goes on while pages are looked at. Needs Chromium.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import calamint as cm

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "dashboard"
PICTURES = ROOT / "docs" / "figures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
URL = "sqlite:///network.db"
JOBS = 60
PAGES = {
    "overview": "",
    "jobs": "/jobs",
    "beliefs": "/beliefs",
    "slices": "/beliefs?x=width&y=",
    "decisions": "/decisions",
    "resources": "/resources",
    "trust": "/trust",
    "changes": "/changes",
    "enqueue": "/enqueue",
}
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import calamint as cm
from train_and_profile import PROBLEM, profile, train
study = cm.Study(PROBLEM, sys.argv[2], "network", seed=0, rationality="batch")
study.run({"train": lambda params: train(params, steps=5000), "profile": profile}, evaluations=1000)
"""


@contextmanager
def live() -> Iterator[str]:
    """The address of the dashboard of a study that runs, and has for a while."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    words = [sys.executable, "-c", RUN, str(ROOT / "examples"), URL]
    run = subprocess.Popen(words, cwd=FOLDER, stdout=subprocess.DEVNULL)
    serve = [sys.executable, "-m", "calamint", "serve", "--port", "0", "--storage", URL]
    server: subprocess.Popen[str] | None = None
    try:
        until = time.monotonic() + 300
        while sum(_ended()) < JOBS:
            assert run.poll() is None, "the run has ended"
            assert time.monotonic() < until, "the run does not get on"
            time.sleep(0.5)
        server = subprocess.Popen(serve, cwd=FOLDER, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        yield f"{found[0]}/studies/1"
    finally:
        for process in (run, server):
            if process is not None:
                process.terminate()
                process.wait(60)


def _ended() -> list[int]:
    try:
        study = cm.Study.load(f"sqlite:///{FOLDER / 'network.db'}", "network")
    except cm.StorageError:
        return [0]
    return list(study.summary().evaluations.values())


Look = Callable[..., Any]


@contextmanager
def browser() -> Iterator[Look]:
    """Opens a page, and waits until all of it is there."""
    from playwright.sync_api import sync_playwright

    path = next(found for each in BROWSERS if (found := shutil.which(each)))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])

        def look(url: str, width: int, dark: bool, height: int = 900) -> Any:
            context = chromium.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if dark else "light",
            )
            page = context.new_page()
            page.goto(url)
            page.locator("[aria-busy]").first.wait_for(state="detached", timeout=120_000)
            page.wait_for_timeout(1000)
            return page

        yield look
        chromium.close()


def everything() -> None:
    with live() as address, browser() as look:
        root = address.removesuffix("/studies/1")
        for name, end in [("studies", root), *((each, address + e) for each, e in PAGES.items())]:
            for width in (390, 1280):
                for dark in (False, True):
                    page = look(end, width, dark)
                    path = FOLDER / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                    page.screenshot(path=path, full_page=True)
                    print(path, flush=True)
                    page.context.close()
        for number in _interesting():
            for width, dark in ((390, True), (1280, False)):
                page = look(f"{address}/jobs/{number}", width, dark)
                page.screenshot(path=FOLDER / f"job{number}-{width}.png", full_page=True)
                page.context.close()


def _interesting() -> list[int]:
    """The job of each task that was expected to yield most."""
    jobs = cm.Study.load(f"sqlite:///{FOLDER / 'network.db'}", "network").jobs
    best = {
        task: max((job for job in jobs if job.task == task), key=lambda job: sum(job.bits.values()))
        for task in ("train", "profile")
    }
    return [job.number for job in best.values()]


def pictures() -> None:
    with live() as address, browser() as look:
        page = look(address, 1200, False, 1000)
        page.screenshot(path=PICTURES / "dashboard.png")
        page = look(f"{address}/jobs/{_interesting()[0]}", 1200, False, 760)
        page.screenshot(path=PICTURES / "dashboard_job.png")
        page = look(f"{address}/beliefs", 1200, False, 1000)
        page.screenshot(path=PICTURES / "dashboard_beliefs.png")


def main() -> None:
    parser = argparse.ArgumentParser(description="Pages of the dashboard, in a browser.")
    parser.add_argument("--pictures", action="store_true", help="only those of README and docs")
    pictures() if parser.parse_args().pictures else everything()


if __name__ == "__main__":
    main()
