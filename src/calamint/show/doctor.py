"""Is everything there that Calamint needs, and is a storage well?"""

import shutil
import sqlite3
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import final

from sqlalchemy import text

import calamint
from calamint.errors import CalamintError
from calamint.run import REVISION, Database, Study, is_dead, names


@final
@dataclass(frozen=True)
class Finding:
    well: bool
    sentence: str


def examine(storage: str | None) -> list[Finding]:
    """What was looked at, and whether it is well."""
    return [*_installation(), *(_storage(storage) if storage else [])]


def _installation() -> list[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    found = [
        Finding(sys.version_info >= (3, 11), f"Python {python} (3.11 or newer is needed)"),
        Finding(True, f"Calamint {calamint.__version__}"),
    ]
    for requirement in requires("calamint") or []:
        if "extra ==" in requirement:
            continue
        package = requirement.split(">")[0].split("=")[0].strip()
        try:
            found.append(Finding(True, f"{package} {version(package)}"))
        except PackageNotFoundError:
            found.append(Finding(False, f"{package} is not installed: pip install '{requirement}'"))
    found.append(_sqlite())
    found.append(_decision())
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
    note = browser or "none, so plots can be saved as HTML only"
    found.append(Finding(True, f"a browser for images of plots: {note}"))
    return found


def _sqlite() -> Finding:
    enough = sqlite3.sqlite_version_info >= (3, 35)
    return Finding(enough, f"SQLite {sqlite3.sqlite_version} (3.35 or newer is needed)")


def _decision() -> Finding:
    """A study on a file in a folder for temporary files makes a decision."""
    problem = calamint.Problem({"x": calamint.Real(0, 1)}, minimize="f")
    try:
        with tempfile.TemporaryDirectory() as folder:
            study = Study(problem, f"sqlite:///{Path(folder) / 'check.db'}", initial=2)
            for _ in range(3):
                job = study.ask()
                assert job is not None
                study.tell(job, {"f": job.params["x"]})
            decision = study.optimizer.decisions[-1]
            study.database.close()
    except Exception as error:
        return Finding(False, f"a small study fails: {type(error).__name__}: {error}")
    well = decision.update == "full" and not decision.warnings
    return Finding(
        well, f"a small study decides in {1000 * decision.stage_seconds['total']:.0f} ms"
    )


def _storage(url: str) -> list[Finding]:
    try:
        database = Database(url, create=False)
        found = [Finding(True, f"{database.where} can be opened, schema {REVISION}")]
        with database.write() as connection:
            connection.execute(text("SELECT 1"))
        found.append(Finding(True, f"{database.where} can be written"))
        if database.path is not None:
            with database.read() as connection:
                checked = connection.execute(text("PRAGMA quick_check")).scalar()
            found.append(Finding(checked == "ok", f"SQLite's own check says: {checked}"))
            room = shutil.disk_usage(database.path.absolute().parent).free
            found.append(Finding(room > 1e8, f"{room / 1e9:.1f} GB are free on its disk"))
        stored = names(database)
        for name in stored:
            found += _study(database, name)
        if not stored:
            found.append(Finding(True, "it has no study yet"))
    except CalamintError as error:
        return [Finding(False, str(error))]
    return found


def _study(database: Database, name: str) -> list[Finding]:
    try:
        study = Study.load(database, name)
    except CalamintError as error:
        return [Finding(False, f"study {name!r} cannot be opened: {error}")]
    ended, open_jobs = sum(study.replica().ended.values()), len(study.replica().open)
    found = [Finding(True, f"study {name!r}: {ended} evaluations, {open_jobs} attempts open")]
    gone = [row for row in study.attempts() if row.lease is not None and is_dead(row.owner)]
    if gone:
        numbers = ", ".join(str(row.job) for row in gone)
        found.append(
            Finding(True, f"the owners of jobs {numbers} are gone: the next ask tries them again")
        )
    return found
