"""`cluster`: a script that runs a study on a cluster with a queue, to read and to change."""

import json
import math
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

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
# Seconds that a worker ends before its time is over, at least, and the share that this is.
_GRACE, _GRACE_SHARE = 60.0, 0.02

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
    cluster = {title}Cluster(
{arguments}
    )
    if "--script" in sys.argv:
        print(cluster.job_script())
        return
    # As many as that at any time: a worker that ends is replaced.
    cluster.adapt(minimum_jobs=WORKERS, maximum_jobs=WORKERS)
    study = cm.Study.load(STORAGE, STUDY{trust})
    report = study.run(
{tasks}        evaluations=EVALUATIONS,
        confirm={confirm},  # of these, to measure what is recommended
        executor=cm.Dask(cluster),
        watch=cm.Live(),
    )
    print(report)
    print(study.recommend())
    cluster.close()


if __name__ == "__main__":
    main()
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
        list[str] | None, typer.Option(help="A line more for the queue, such as --gres=gpu:1.")
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
    seconds = _seconds(time)
    path = output or Path(f"start_{system}.py")
    if path.exists():
        typer.echo(f"error: {path} exists: remove it, or write another with -o.", err=True)
        raise typer.Exit(FAILED)
    grace = max(_GRACE, _GRACE_SHARE * seconds)
    if seconds < 2 * grace:
        raise ProblemError(f"time is {time!r}: write at least {math.ceil(2 * grace)} seconds.")
    # Workers do not all end at the same time, and none is ended by the queue.
    lifetime = ["--lifetime", f"{seconds - grace:.0f}s", "--lifetime-stagger", f"{grace / 2:.0f}s"]
    offers = " ".join(f"{key}={count}" for key, count in offered.items())
    given: dict[str, Any] = {
        "cores": cpus,
        "processes": 1,
        "memory": memory,
        "walltime": _walltime(system, seconds),
        "queue": queue,
        _CHARGED[system]: account,
        "job_extra_directives": directive,
        "job_script_prologue": prologue,
        "interface": interface,
        "log_directory": "worker-logs",
        # They are part of a line of a shell.
        "worker_extra_args": [*lifetime, *(["--resources", f"'{offers}'"] if offered else [])],
    }
    module, _, function = (tasks or "").partition(":")
    path.touch(mode=0o700)  # the storage may have a password
    path.write_text(
        _SCRIPT.format(
            study=json.dumps(study.name),
            title=system.upper(),
            file=path.name,
            storage=json.dumps(storage),
            evaluations=evaluations,
            confirm=default_confirmations(study.problem, evaluations),
            workers=workers,
            trust=", trust=True" if trust else "",
            imports=f"from {module.removesuffix('.py')} import {function}\n" if tasks else "",
            tasks=f"        {function},\n" if tasks else "",
            arguments="\n".join(
                f"        {key}={json.dumps(value)},"
                for key, value in given.items()
                if value is not None
            ),
        )
    )
    typer.echo(f"Written: {path}. Look at it, then run: python {path}")


def _seconds(text: str) -> float:
    """Of hours:minutes:seconds, or hours:minutes."""
    if not re.fullmatch(r"\d+:[0-5]\d(:[0-5]\d)?", text):
        raise ProblemError(f"time is {text!r}: write hours:minutes:seconds, such as 4:00:00.")
    hours, minutes, seconds = [*map(int, text.split(":")), 0][:3]
    return 3600.0 * hours + 60.0 * minutes + seconds


def _walltime(system: System, seconds: float) -> str:
    """As each writes it: LSF has no seconds."""
    hours, rest = divmod(round(seconds), 3600)
    minutes = rest // 60
    return f"{hours:02}:{minutes:02}" + ("" if system is System.lsf else f":{rest % 60:02}")
