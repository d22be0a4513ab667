"""`cluster`: a script that runs a study on a cluster with a queue, to read and to change."""

import json
import math
import re
import shlex
from collections.abc import Iterable
from enum import StrEnum
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any

import typer

from calamint.checks import check_integer
from calamint.decide import default_confirmations
from calamint.errors import ProblemError
from calamint.show.cli.app import DEFAULT, FAILED, Name, Storage, Trust, app, read_study
from calamint.show.cli.arguments import check_offered, read_counts


class System(StrEnum):
    slurm = "slurm"
    pbs = "pbs"
    sge = "sge"
    lsf = "lsf"


# What each calls whom the time is charged to.
_CHARGED = {
    System.slurm: "account",
    System.pbs: "account",
    System.sge: "project",
    System.lsf: "project",
}
_MEMORY = r"[0-9]*[1-9][0-9]*(\.[0-9]+)? ?[kKMGT]i?[bB]?"
# Seconds that a worker ends before its time is over, at least, and the share that this is.
_GRACE, _GRACE_SHARE = 60.0, 0.02
# What functions are called in the script, whatever they are called where they are.
_FUNCTIONS = "task_functions"

_SCRIPT = '''\
"""Runs study {study} on {title}. Written by `calamint cluster`; it is yours to change.

    python {file}             # on a machine that may submit jobs; run it again to continue
    python {file} --script    # only prints the job script of a worker
"""

import sys

from dask_jobqueue import {title}Cluster

import calamint as cm
{imports}
STORAGE = {storage}
STUDY = {study}
EVALUATIONS = {evaluations}  # in all, earlier runs included
WORKERS = {workers}  # jobs of {title} at a time


def main() -> None:
    with {title}Cluster(
{arguments}
    ) as cluster:
        if "--script" in sys.argv:
            print(cluster.job_script())
            return
        # As many as that at any time: a worker that ends is replaced.
        cluster.adapt(minimum_jobs=WORKERS, maximum_jobs=WORKERS)
        study = cm.Study.load(STORAGE, STUDY{trust})
        report = study.run(
{tasks}            evaluations=EVALUATIONS,
            confirm={confirm},  # of these, to measure what is recommended
            executor=cm.Dask(cluster),
            watch=cm.Live(),
        )
    print(report)
    print(study.recommend())


if __name__ == "__main__":
    try:
        main()
    except cm.CalamintError as error:
        sys.exit(f"error: {{error}}")
'''


@app.command(epilog="Example: calamint cluster slurm --cpus 4 --time 4:00:00 --resource gpu")
def cluster(
    system: Annotated[System, typer.Argument(help="What manages the queue.")],
    cpus: Annotated[int, typer.Option(help="Cores of a worker.")],
    time: Annotated[str, typer.Option(help="Wall-time of a worker: hours:minutes:seconds.")],
    evaluations: Annotated[
        int, typer.Option(help="Total number of evaluations, earlier runs included.")
    ] = 100,
    memory: Annotated[str, typer.Option(help="Memory of a worker.")] = "4GB",
    workers: Annotated[int, typer.Option(help="How many workers at a time.")] = 4,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            help="What a worker offers: gpu, or cpu=4; by default a job of any task for each core."
        ),
    ] = None,
    queue: Annotated[str | None, typer.Option(help="Queue, or partition.")] = None,
    account: Annotated[str | None, typer.Option(help="Account, or project.")] = None,
    directive: Annotated[
        list[str] | None, typer.Option(help="An extra line for the queue, such as --gres=gpu:1.")
    ] = None,
    prologue: Annotated[
        list[str] | None,
        typer.Option(help="A command before a worker starts, such as 'module load python'."),
    ] = None,
    interface: Annotated[
        str | None, typer.Option(help="The network that workers use, such as ib0.")
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Functions that run the tasks: file.py:name of a dict, or module:name."),
    ] = None,
    storage: Storage = DEFAULT,
    name: Name = None,
    trust: Trust = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The script; by default start_SYSTEM.py.")
    ] = None,
) -> None:
    """Write a script that runs a study on a cluster with SLURM, PBS, SGE or LSF.

    The script submits workers through dask-jobqueue, and replaces those whose time is over.
    """
    study = read_study(storage, name, trust)
    offered = read_counts(resource or ())
    check_offered(study, offered)
    for field, count in (("cpus", cpus), ("evaluations", evaluations), ("workers", workers)):
        check_integer(count, field, 1)
    if not re.fullmatch(_MEMORY, memory):
        raise ProblemError(f"memory is {memory!r}: write a number with its unit, such as 4GB.")
    for field, words in (("queue", queue), ("account", account), ("interface", interface)):
        _check_lines(field, [] if words is None else [words])
    _check_lines("directive", directive or ())
    _check_lines("prologue", prologue or ())
    if system is System.lsf and '"' in (account or ""):
        raise ProblemError(f"account is {account!r}: write it without quotes, which LSF adds.")
    wall_time, lifetime = _times(system, time)
    path = output or Path(f"start_{system}.py")
    if path.exists():
        typer.echo(f"error: {path} exists: remove it, or write another with -o.", err=True)
        raise typer.Exit(FAILED)
    offers = " ".join(f"{key}={count}" for key, count in offered.items())
    given: dict[str, Any] = {
        "cores": cpus,
        "processes": 1,
        "memory": memory,
        "walltime": wall_time,
        "queue": queue,
        _CHARGED[system]: account,
        "job_extra_directives": directive,
        "job_script_prologue": prologue,
        "interface": interface,
        "log_directory": "worker-logs",
        # They are part of a line of a shell.
        "worker_extra_args": [*lifetime, *(["--resources", f"'{offers}'"] if offered else [])],
    }
    script = _SCRIPT.format(
        study=_literal(study.name),
        title=system.upper(),
        file=_literal(path.name)[1:-1],
        storage=_literal(storage),
        evaluations=evaluations,
        confirm=default_confirmations(study.problem, evaluations),
        workers=workers,
        trust=", trust=True" if trust else "",
        imports="" if tasks is None else _import(tasks),
        tasks="" if tasks is None else f"            {_FUNCTIONS},\n",
        arguments="\n".join(
            f"        {key}={_literal(value)}," for key, value in given.items() if value is not None
        ),
    )
    try:
        path.touch(mode=0o700)  # the storage may have a password
        path.write_text(script, encoding="utf-8")
    except OSError as error:
        words = f"the script {str(path)!r} cannot be written: {error.strerror}."
        raise ProblemError(words) from error
    typer.echo(f"Written: {path}. Look at it, then run: python {shlex.quote(str(path))}")


def _check_lines(field: str, lines: Iterable[str]) -> None:
    """Refuse what would be no line, or more than one, of a job script."""
    for line in lines:
        if not line.strip() or not line.replace("\t", " ").isprintable():
            raise ProblemError(f"{field} is {line!r}: write one line of text.")


def _literal(value: Any) -> str:
    """As Python writes it, whatever is in it."""
    # What is no Unicode, as in some paths, is escaped.
    return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()


def _import(tasks: str) -> str:
    """A line that imports functions by module:name, or file.py:name, for the script."""
    module, _, name = tasks.partition(":")
    words = [*module.removesuffix(".py").split("."), name]
    if not all(word.isidentifier() and not iskeyword(word) for word in words):
        raise ProblemError(
            f"tasks is {tasks!r}: write module:name, or the name of a file beside the script, such"
            " as work.py:tasks."
        )
    return f"from {'.'.join(words[:-1])} import {name} as {_FUNCTIONS}\n"


def _times(system: System, text: str) -> tuple[str, list[str]]:
    """The wall-time of a worker, and options by which it ends before."""
    if not re.fullmatch("[0-9]{1,4}:[0-5][0-9](:[0-5][0-9])?", text):
        raise ProblemError(f"time is {text!r}: write hours:minutes:seconds, such as 4:00:00.")
    hours, minutes, rest = [*map(int, text.split(":")), 0][:3]
    written = f"{hours:02}:{minutes:02}:{rest:02}"
    if system is System.lsf:  # it has no seconds
        written, rest = written[:-3], 0
    seconds = 3600 * hours + 60 * minutes + rest
    grace = max(_GRACE, _GRACE_SHARE * seconds)
    if seconds < 2 * grace:
        raise ProblemError(f"time is {text!r}: write at least {math.ceil(2 * grace)} seconds.")
    # Workers do not all end at the same time, and none is ended by the queue.
    ends = ["--lifetime", f"{seconds - grace:.0f}s", "--lifetime-stagger", f"{grace / 2:.0f}s"]
    return written, ends
