"""Where jobs keep their files: output, and results until they are stored."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calamint.run.study import Study


def jobs_folder(study: "Study") -> Path | None:
    """Where the files of all studies in a storage are kept; None for a study in memory."""
    if study.database.in_memory:
        return None
    path = study.database.path
    return Path("calamint.jobs" if path is None else f"{path}.jobs")


def folder_name(study: "Study") -> str:
    """Of the folder for the files of a study's jobs; no two studies share it."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in study.name)
    return safe if safe == study.name else f"{safe}~{study.replica().study}"
