"""The command line: a whole optimisation without writing Python."""

import json
import sys
from collections import Counter
from datetime import datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from calamint.problem import ProblemError
from calamint.run.database import Database
from calamint.run.errors import StorageError
from calamint.run.executors import Local, read_works
from calamint.run.opening import names
from calamint.run.study import Study
from calamint.run.tables import columns_of
from calamint.show.doctor import examine
from calamint.show.live import Live
from calamint.show.reading import import_name, read_pairs, read_params, read_problem, read_value
from calamint.show.rows import Format, say, show_answer, show_rows

# What a script can tell by the exit code; 2 is a wrong command line.
FAILED, NOTHING_TO_DO, STORAGE, INTERRUPTED = 1, 3, 4, 130

app = typer.Typer(
    name="calamint",
    help="Which measurement to make next, at which input, on which machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 nothing can start now,"
    " 4 the storage cannot be used, 130 interrupted.",
)


class States(StrEnum):
    waiting = "waiting"
    running = "running"
    done = "done"
    failed = "failed"
    cancelled = "cancelled"


Storage = Annotated[
    str,
    typer.Option("--storage", "-s", envvar="CALAMINT_STORAGE", help="sqlite:///path.db"),
]
Name = Annotated[
    str | None, typer.Option("--name", "-n", help="Of the study, if there are several.")
]
As = Annotated[Format, typer.Option("--format", "-f", help="How to write the answer.")]
JobNumber = Annotated[int, typer.Argument(help="The number that ask gave.")]
DEFAULT = "sqlite:///calamint.db"


def _open(storage: str, name: str | None) -> Study:
    return Study.load(storage, name)


@app.command(epilog="Example: calamint init problem.toml --storage sqlite:///nn.db")
def init(
    spec: Annotated[str, typer.Argument(help="A TOML or JSON file, or module:problem.")],
    storage: Storage = DEFAULT,
    name: Annotated[str, typer.Option("--name", "-n", help="Of the study.")] = "study",
    seed: Annotated[int | None, typer.Option(help="Another one gives another sequence.")] = None,
    acquisition: Annotated[str | None, typer.Option(help="How to decide; pesc by default.")] = None,
    delta: Annotated[float | None, typer.Option(help="Accepted risk of infeasibility.")] = None,
    rationality: Annotated[
        float | None, typer.Option(help="Share of the time that full updates may take.")
    ] = None,
) -> None:
    """Create a study from a problem, or check that it is there."""
    problem = read_problem(spec)
    database = Database(storage)
    existed = name in names(database)
    study = Study(
        problem,
        database,
        name,
        seed=seed,
        acquisition=acquisition,
        delta=delta,
        rationality=rationality,
    )
    typer.echo(problem.describe())
    done = sum(study.look().ended.values())
    state = f"was there already, with {done} evaluations" if existed else "is ready"
    typer.echo(f"\nStudy {name!r} {state} in {database.where}.")


@app.command(epilog="Example: calamint run --evaluations 60 --storage sqlite:///nn.db")
def run(
    spec: Annotated[
        str | None, typer.Argument(help="Create the study from it, if it is not there.")
    ] = None,
    storage: Storage = DEFAULT,
    name: Name = None,
    evaluations: Annotated[int | None, typer.Option(help="In all, earlier ones included.")] = None,
    seconds: Annotated[float | None, typer.Option(help="After which no job is started.")] = None,
    cost: Annotated[float | None, typer.Option(help="In all, as it is expected.")] = None,
    bits: Annotated[float | None, typer.Option(help="The least that a job must tell.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds that a job may take.")] = None,
    tasks: Annotated[
        str | None, typer.Option(help="module:name of a dict of functions by task.")
    ] = None,
) -> None:
    """Decide and run jobs until a budget is used up; go on where an earlier run stopped."""
    if evaluations is None and seconds is None and cost is None and bits is None:
        raise ProblemError("no budget is given: add --evaluations, --seconds, --cost or --bits.")
    works = None if tasks is None else import_name(tasks, "'module:name' of a dict")
    if spec is not None:
        problem = read_problem(spec)
        read_works(problem.tasks, works)  # refuses before anything is stored
        study = Study(problem, Database(storage), name or "study")
    else:
        study = _open(storage, name)
    console = Console()
    with Live(console) as live:
        report = study.run(
            works, evaluations, seconds, cost, bits, executor=Local(timeout), watch=live
        )
    say(console, f"{report}.")
    if study.history:
        say(console, f"Recommended: {study.recommend()}")
    say(console, f"Everything is in {study.database.where}.")
    if report.stopped == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if report.evaluations and report.failed == report.evaluations:
        say(console, "Every evaluation failed: `calamint jobs --state failed` has the reasons.")
        raise typer.Exit(FAILED)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"calamint {version('calamint')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which this is.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: calamint studies --storage sqlite:///nn.db")
def studies(storage: Storage = DEFAULT, format: As = Format.table) -> None:  # noqa: A002
    """The studies of a storage."""
    show_rows([{"study": name} for name in names(Database(storage, create=False))], format)


@app.command(epilog="Example: calamint status --format json")
def status(storage: Storage = DEFAULT, name: Name = None, format: As = Format.table) -> None:  # noqa: A002
    """How far a study is."""
    study = _open(storage, name)
    mirror = study.look()
    jobs = study.jobs
    states = Counter(job.state for job in jobs)
    best = study.recommend() if study.history else None
    facts: dict[str, Any] = {
        "study": study.name,
        "storage": study.database.where,
        "evaluations": sum(mirror.ended.values()),
        "ended": {task: mirror.ended[task] for task in study.problem.tasks},
        **{state: states[state] for state in ("waiting", "running", "failed", "cancelled")},
        "deciding_seconds": round(mirror.thinking, 3),
        "recommended": None if best is None else best.params,
        "objective": None if best is None else best.objective,
        "probability": None if best is None else best.probability,
    }
    show_rows([facts], format, single=True)


@app.command(epilog="Example: calamint ask --task profile --format json")
def ask(
    storage: Storage = DEFAULT,
    name: Name = None,
    task: Annotated[str | None, typer.Option(help="Only of this task.")] = None,
    resource: Annotated[str | None, typer.Option(help="Only on this resource.")] = None,
    format: As = Format.table,  # noqa: A002
) -> None:
    """Book the next job, and say what to run; exit code 3 if nothing can start now."""
    job = _open(storage, name).ask(resource, task)
    if job is None:
        typer.echo("Nothing can start now: tell, fail or cancel a job first.", err=True)
        raise typer.Exit(NOTHING_TO_DO)
    row = {
        "job": job.number,
        "task": job.task,
        "resources": list(job.resources),
        "params": job.params,
        "bits": job.bits,
        "cost": job.cost,
        "update": job.update,
    }
    show_answer(job, row, format)


@app.command(epilog="Example: calamint tell 3 error=0.071 latency_ms=1.3,0.1 converges=true")
def tell(
    job: JobNumber,
    values: Annotated[
        list[str] | None, typer.Argument(help="name=value, or name=value,standard_error")
    ] = None,
    json_text: Annotated[
        str | None, typer.Option("--json", help="The values as JSON; - reads standard input.")
    ] = None,
    storage: Storage = DEFAULT,
    name: Name = None,
    seconds: Annotated[float | None, typer.Option(help="How long it took.")] = None,
) -> None:
    """What a job measured."""
    if json_text is not None:
        text = sys.stdin.read() if json_text == "-" else json_text
        try:
            read = json.loads(text)
        except ValueError as error:
            raise ProblemError(f"the values are not JSON: {error}.") from error
    else:
        read = {key: read_value(text) for key, text in read_pairs(values or []).items()}
    study = _open(storage, name)
    used = study.tell(job, read, seconds)
    if not used:
        typer.echo(f"Job {job} had ended: kept, and not used.")
        return
    record = study.jobs[job]
    failed = record.state != "done"
    typer.echo(
        f"Job {job} is {record.state}: {record.reason}." if failed else f"Job {job} is told."
    )


@app.command(epilog='Example: calamint fail 3 "the solver diverged"')
def fail(
    job: JobNumber,
    reason: Annotated[str, typer.Argument(help="Why, in words.")],
    storage: Storage = DEFAULT,
    name: Name = None,
) -> None:
    """A job ended without a result."""
    _open(storage, name).fail(job, reason)
    typer.echo(f"Job {job} is recorded as failed.")


@app.command(epilog="Example: calamint cancel 3")
def cancel(job: JobNumber, storage: Storage = DEFAULT, name: Name = None) -> None:
    """A job will not be run; its resources are free again."""
    _open(storage, name).cancel(job)
    typer.echo(f"Job {job} is cancelled.")


@app.command(epilog="Example: calamint enqueue train learning_rate=0.01 width=64")
def enqueue(
    task: Annotated[str, typer.Argument(help="Which task.")],
    params: Annotated[list[str], typer.Argument(help="name=value for every parameter")],
    storage: Storage = DEFAULT,
    name: Name = None,
) -> None:
    """Have an input tried before anything else."""
    study = _open(storage, name)
    number = study.enqueue(task, read_params(study, params))
    typer.echo(f"Job {number} waits to be asked for.")


@app.command(epilog="Example: calamint recommend --delta 0.01 --format json")
def recommend(
    storage: Storage = DEFAULT,
    name: Name = None,
    delta: Annotated[float | None, typer.Option(help="Accepted risk of infeasibility.")] = None,
    observed: Annotated[bool, typer.Option(help="Only inputs that were measured.")] = False,
    format: As = Format.table,  # noqa: A002
) -> None:
    """Where the constrained optimum is believed to be."""
    study = _open(storage, name)
    if not study.history:
        raise ProblemError("nothing has been measured yet: ask for a job, and tell its result.")
    best = study.recommend(delta, "observed" if observed else "believed")
    row = {
        "params": best.params,
        "objective": best.objective,
        "probability": best.probability,
        "confident": best.confident,
    }
    show_answer(best, row, format)


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
            "created": datetime.fromtimestamp(job.created).isoformat(" ", "seconds"),
            "seconds": None if job.seconds is None else round(job.seconds, 3),
            "reason": job.reason,
        }
        for job in _open(storage, name).jobs
        if state is None or job.state == state
    ]
    narrow = ["job", "task", "state", "params", "values", "bits", "seconds", "reason"]
    show_rows(rows, format, narrow if format is Format.table else None)


@app.command(epilog="Example: calamint history --format csv")
def history(storage: Storage = DEFAULT, name: Name = None, format: As = Format.table) -> None:  # noqa: A002
    """What was measured, in order."""
    study = _open(storage, name)
    rows = study.table()
    show_rows(rows, format, columns_of(study.problem, rows))


@app.command(epilog="Example: calamint export measurements.csv")
def export(
    path: Annotated[Path, typer.Argument(help="A .csv or .json file.")],
    storage: Storage = DEFAULT,
    name: Name = None,
) -> None:
    """Write what was measured to a file."""
    study = _open(storage, name)
    if path.suffix == ".json":
        try:
            path.write_text(json.dumps(study.table(), indent=2) + "\n")
        except OSError as error:
            raise ProblemError(f"{str(path)!r} cannot be written: {error.strerror}.") from error
    elif path.suffix == ".csv":
        study.to_csv(path)
    else:
        raise ProblemError(f"the file is {str(path)!r}: write one ending in .csv or .json.")
    typer.echo(f"Rows in {path}: {len(study.history)}.")


@app.command("import", epilog="Example: calamint import earlier.csv")
def import_(
    path: Annotated[Path, typer.Argument(help="A CSV or JSON file, as export writes them.")],
    storage: Storage = DEFAULT,
    name: Name = None,
) -> None:
    """Add measurements from elsewhere."""
    count = _open(storage, name).add_table(path)
    typer.echo(f"Rows added: {count}.")


@app.command(epilog="Example: calamint gains learning_rate=0.01 width=64")
def gains(
    params: Annotated[list[str], typer.Argument(help="name=value for every parameter")],
    storage: Storage = DEFAULT,
    name: Name = None,
    format: As = Format.table,  # noqa: A002
) -> None:
    """How many bits a measurement of each function would tell at an input."""
    study = _open(storage, name)
    found = study.gains([read_params(study, params)])
    show_rows([{"function": key, "bits": float(value[0])} for key, value in found.items()], format)


@app.command(epilog="Example: calamint doctor --storage sqlite:///nn.db")
def doctor(
    storage: Annotated[
        str | None, typer.Option("--storage", "-s", envvar="CALAMINT_STORAGE")
    ] = None,
) -> None:
    """Check the installation, and a storage, and say what is wrong."""
    findings = examine(storage)
    for finding in findings:
        typer.echo(f"{'ok   ' if finding.well else 'WRONG'} {finding.sentence}")
    if not all(finding.well for finding in findings):
        raise typer.Exit(FAILED)


def main() -> None:
    """The program; mistakes are one sentence and an exit code."""
    sys.path.insert(0, "")  # problems may name functions of modules here
    try:
        app()
    except StorageError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(STORAGE)
    except ProblemError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
