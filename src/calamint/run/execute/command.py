"""Tasks that are programs: what they are given, and what is checked before any is started."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from calamint.errors import TaskError
from calamint.run.jobs import Job

# Words of a command that end so name a file.
_SCRIPTS = (".py", ".sh", ".R", ".jl", ".m", ".pl", ".rb", ".js", ".lua")


@final
@dataclass(frozen=True)
class Command:
    """A program: parameters come as JSON on its standard input, results are JSON on the last line
    of its output, or in the file that the variable CALAMINT_RESULT names."""

    argv: tuple[str, ...]


def check_command(task: str, command: Command) -> None:
    """Refuse a program that is not there, before any input is blamed for it."""
    program = command.argv[0]
    if shutil.which(program) is None:
        raise TaskError(f"task {task!r}: the program {program!r} is not found here.")
    for word in command.argv[1:]:
        named = Path(word).suffix in _SCRIPTS and " " not in word and not word.startswith("-")
        if named and not os.path.isfile(word):
            raise TaskError(
                f"task {task!r}: the file {word!r} is not in {Path.cwd()}: run it from where it is,"
                " or write an absolute path."
            )


def command_payload(
    command: Command, job: Job, folder: Path, working_folder: Path
) -> dict[str, Any]:
    """What a worker process needs to run a command, whose files are in `folder`."""
    answer = folder / "result.json"
    environment = {
        "CALAMINT_PARAMS": json.dumps(job.params),
        "CALAMINT_TASK": job.task,
        "CALAMINT_JOB": str(job.number),
        "CALAMINT_ATTEMPT": str(job.attempt),
        "CALAMINT_RESOURCES": ",".join(job.resources),
        "CALAMINT_RESULT": str(answer),
        "CALAMINT_FOLDER": str(folder),
    }
    return {
        "argv": list(command.argv),
        "folder": str(working_folder),
        "answer": str(answer),
        "environment": environment,
    }
