"""Where jobs keep their files: output, and results until they are stored."""

from pathlib import Path

from calamint.run.store import Database


def jobs_folder(database: Database) -> Path | None:
    """Where the files of all studies in a storage are kept; None for one in memory."""
    if database.in_memory:
        return None
    return Path("calamint.jobs" if database.path is None else f"{database.path}.jobs")


def folder_name(name: str, study: int) -> str:
    """Of the folder for the files of a study's jobs; no two studies share it."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)
    return safe if safe == name else f"{safe}~{study}"


def folder_of(database: Database, name: str, study: int) -> Path | None:
    """Where the files of a study's jobs are, unless its runs were told otherwise."""
    folder = jobs_folder(database)
    return None if folder is None else folder / folder_name(name, study)
