"""Commands that say how far a study is: status, jobs, history, studies."""

from collections import Counter
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from calamint.run import Database, columns_of, names
from calamint.show.cli.app import DEFAULT, As, Name, Storage, app, open_study
from calamint.show.cli.output import Format, show_rows


class States(StrEnum):
    waiting = "waiting"
    running = "running"
    done = "done"
    failed = "failed"
    cancelled = "cancelled"


@app.command(epilog="Example: calamint studies --storage sqlite:///nn.db")
def studies(storage: Storage = DEFAULT, format: As = Format.table) -> None:  # noqa: A002
    """The studies of a storage."""
    show_rows([{"study": name} for name in names(Database(storage, create=False))], format)


@app.command(epilog="Example: calamint status --format json")
def status(storage: Storage = DEFAULT, name: Name = None, format: As = Format.table) -> None:  # noqa: A002
    """How far a study is."""
    study = open_study(storage, name)
    replica = study.replica()
    jobs = study.jobs
    warned = [job for job in jobs if job.warnings]
    states = Counter(job.state for job in jobs)
    best = study.recommend() if study.history else None
    facts: dict[str, Any] = {
        "study": study.name,
        "storage": study.database.where,
        "evaluations": sum(replica.ended.values()),
        "ended": {task: replica.ended[task] for task in study.problem.tasks},
        **{state: states[state] for state in ("waiting", "running", "failed", "cancelled")},
        "decision_seconds": round(replica.decision_seconds, 3),
        "decisions_with_warnings": len(warned),
        "last_warning": f"job {warned[-1].number}: {warned[-1].warnings[-1]}" if warned else None,
        "recommended": None if best is None else best.params,
        "objective": None if best is None else best.objective,
        "probability": None if best is None else best.probability,
    }
    show_rows([facts], format, single=True)


@app.command(epilog="Example: calamint jobs --state failed")
def jobs(
    storage: Storage = DEFAULT,
    name: Name = None,
    state: Annotated[States | None, typer.Option(help="Only those in this state.")] = None,
    format: As = Format.table,  # noqa: A002
) -> None:
    """All jobs, with their states."""
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
            "reason": job.reason,
        }
        for job in open_study(storage, name).jobs
        if state is None or job.state == state
    ]
    narrow = ["job", "task", "state", "params", "values", "bits", "seconds", "reason"]
    show_rows(rows, format, narrow if format is Format.table else None)


@app.command(epilog="Example: calamint history --format csv")
def history(storage: Storage = DEFAULT, name: Name = None, format: As = Format.table) -> None:  # noqa: A002
    """What was measured, in order."""
    study = open_study(storage, name)
    rows = study.table()
    show_rows(rows, format, columns_of(study.problem, rows))
