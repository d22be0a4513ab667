"""Commands that say how far a study is: status, jobs, history, studies."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from calamint import run
from calamint.show.cli.app import DEFAULT, As, Name, Storage, Trust, app, read_study
from calamint.show.cli.output import Format, show_rows


class States(StrEnum):
    waiting = "waiting"
    running = "running"
    held = "held"
    done = "done"
    failed = "failed"
    cancelled = "cancelled"
    withdrawn = "withdrawn"


@app.command(epilog="Example: calamint studies --storage sqlite:///nn.db")
def studies(storage: Storage = DEFAULT, format: As = Format.table) -> None:  # noqa: A002
    """List the studies of a storage."""
    show_rows(
        [{"study": name} for name in run.names(run.Database(storage, read_only=True))], format
    )


@app.command(epilog="Example: calamint status --format json")
def status(storage: Storage = DEFAULT, name: Name = None, format: As = Format.table) -> None:  # noqa: A002
    """Print how far a study has come."""
    database = run.Database(storage, read_only=True)
    found = run.summarise(database, name)
    best, warnings = found.recommendation, found.warnings
    last = f"job {warnings[-1][0]}: {warnings[-1][1]}" if warnings else None
    facts: dict[str, Any] = {
        "study": found.name,
        "storage": database.where,
        "evaluations": sum(found.evaluations.values()),
        "ended": found.evaluations,
        **found.states,
        "paused": found.paused or None,
        "decision_seconds": round(found.decision_seconds, 3),
        "decisions_with_warnings": len(warnings),
        "last_warning": last,
        "recommended": None if best is None else best.params,
        "objective": None if best is None else best.objective,
        "probability": None if best is None else best.probability,
        "results_since": found.results_since,
    }
    show_rows([facts], format, single=True)


@app.command(epilog="Example: calamint jobs --state failed")
def jobs(
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    state: Annotated[States | None, typer.Option(help="List only jobs in this state.")] = None,
    format: As = Format.table,  # noqa: A002
) -> None:
    """List all jobs with their states."""
    rows = [
        {
            "job": job.number,
            "task": job.task,
            "state": job.state,
            "attempts": job.attempts,
            "params": job.params,
            "values": job.values,
            "bits": round(sum(job.bits.values()), 4) if job.bits else None,
            "update": job.update,
            "warnings": list(job.warnings),
            "created": datetime.fromtimestamp(job.created).isoformat(" ", "seconds"),
            "seconds": None if job.seconds is None else round(job.seconds, 3),
            "cause": job.cause,
            "reason": job.reason,
        }
        for job in read_study(storage, name, trust).jobs
        if state is None or job.state == state
    ]
    narrow = ["job", "task", "state", "params", "values", "bits", "seconds", "cause", "reason"]
    show_rows(rows, format, narrow if format is Format.table else None)


@app.command(epilog="Example: calamint history --format csv")
def history(
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    format: As = Format.table,  # noqa: A002
) -> None:
    """Print all measurements, in the order in which they were reported."""
    study = read_study(storage, name, trust)
    rows = study.table()
    show_rows(rows, format, run.columns_of(study.problem, rows))
