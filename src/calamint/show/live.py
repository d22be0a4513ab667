"""The progress of a run: a table that is refreshed, or plain lines."""

import time
from collections import Counter
from typing import Any, final

from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from calamint.decide import REASONS
from calamint.run import Job, JobResult, Progress, Watcher


@final
class Live(Watcher):
    """Shows a run in a terminal; if the output is not one, a line for every job that ends.

    study.run(tasks, evaluations=60, watch=cm.Live())
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console if console is not None else Console()
        self._live: RichLive | None = None

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop refreshing; the last table stays on the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def message(self, sentence: str) -> None:
        self.console.print(Text(sentence))

    def started(self, progress: Progress, job: Job) -> None:  # noqa: ARG002
        self.refresh(progress)

    def ended(self, progress: Progress, result: JobResult) -> None:
        if not self.console.is_terminal:
            self.console.print(Text(_line(progress, result)), soft_wrap=True)

    def refresh(self, progress: Progress) -> None:
        if not self.console.is_terminal:
            return
        if self._live is None:
            self._live = RichLive(console=self.console, auto_refresh=False)
            self._live.start()
        self._live.update(render(progress), refresh=True)


def _line(progress: Progress, result: JobResult) -> str:
    job = result.job
    inputs = ", ".join(f"{name} = {_short(value)}" for name, value in job.params.items())
    found = f"failed: {result.error}" if result.error else str(_values(result.values))
    total = sum(progress.ended.values())
    of = f"/{progress.budget}" if progress.budget else ""
    bits = f", {sum(job.bits.values()):.2f} bits were expected" if job.bits else ""
    if job.update in REASONS:
        bits = f", {REASONS[job.update]}"
    return (
        f"{total}{of} {job.task} on {'+'.join(job.resources)} at {inputs}: {found}"
        f" ({result.seconds:.1f} s{bits})"
    )


def render(progress: Progress) -> Group:
    """A table of resources and their jobs, followed by a summary."""
    # Users' words are never markup.
    table = Table(expand=True, title=Text(f"Study {progress.name}"), title_justify="left")
    table.add_column("resource", no_wrap=True)
    table.add_column("job", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("elapsed", justify="right", no_wrap=True)
    now = time.monotonic()
    for resource, capacity in progress.capacities.items():
        here = [
            (job, began) for job, began in progress.running.items() if resource in job.resources
        ]
        for slot in range(capacity):
            if slot < len(here):
                job, began = here[slot]
                inputs = ", ".join(f"{k} = {_short(v)}" for k, v in job.params.items())
                again = f" (attempt {job.attempt})" if job.attempt > 1 else ""
                words = Text(f"{job.task} {job.number}{again}: {inputs}")
                table.add_row(Text(resource), words, _duration(now - began))
            else:
                away = slot - len(here)
                others = progress.other_jobs.get(resource, [])
                busy = f"{others[away]}, in another process" if away < len(others) else "free"
                table.add_row(Text(resource), Text(busy, style="dim"), "")
    return Group(table, *(Text(line) for line in _summary(progress)))


def _summary(progress: Progress) -> list[str]:
    ended = Counter(progress.ended)
    of = f" of {progress.budget}" if progress.budget else ""
    each = ", ".join(f"{task} {count}" for task, count in ended.items()) or "none yet"
    failed = f", {progress.failed} failed" if progress.failed else ""
    lines = [f"Evaluations: {sum(ended.values())}{of} ({each}{failed})"]
    if progress.failure is not None:
        lines.append(f"Last failure: {progress.failure}")
    if progress.best is not None:
        lines.append(f"Best: {progress.best}")
    if progress.last is not None:
        job = progress.last
        bits = f"{sum(job.bits.values()):.3g} bits" if job.bits else "no bits"
        lines.append(
            f"Last decision: {job.task}, {bits},"
            f" {1000 * job.decision_seconds:.0f} ms ({job.update})"
        )
    share = progress.decision_seconds / progress.seconds if progress.seconds > 0 else 0.0
    lines.append(f"Time: {_duration(progress.seconds)}, {share:.0%} spent on deciding")
    return lines


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _values(values: Any) -> str:
    if isinstance(values, dict):
        return ", ".join(f"{name} = {_short(value)}" for name, value in values.items())
    return _short(values)
