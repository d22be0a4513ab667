"""How many results a second can a storage take? Calamint's studies beside Optuna's, on the same
server.

    make peers-setup
    .venv-peers/bin/python benchmarks/storage.py

Pairs of ask and tell with random suggestions, six parameters and one function, by one process and
by eight on this machine, when nothing, 10,000 and 100,000 jobs have been finished (by one, as each
process would read them all). A real PostgreSQL server, and SQLite in a file; Optuna's `RDBStorage`
with its `RandomSampler`. Each number is of ten seconds, after all processes have opened the study
and made one pair, which took as long as the second number says. Written to `results/storage.md`.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

RESULTS = Path(__file__).parent / "results"
NAMES = [f"x{index}" for index in range(6)]
SECONDS = 10.0
TOOLS = ("Calamint", "Optuna")
STORAGES = ("PostgreSQL", "SQLite")
FINISHED = (0, 10_000, 100_000)
PROCESSES = (1, 8)

Pair = Callable[[], None]


def value(params: dict[str, float]) -> float:
    return sum(params.values())


# -- Calamint --------------------------------------------------------------------------------------


def open_calamint(url: str) -> Pair:
    from calamint import Problem, Real, Study

    problem = Problem({name: Real(0, 1) for name in NAMES}, "f", resources={"here": 8})
    study = Study(problem, url, acquisition="random", initial=0, seed=0)

    def pair() -> None:
        job = study.ask()
        if job is None:  # all eight places are taken
            time.sleep(0.001)
            return pair()
        study.tell(job, {"f": value(job.params)})
        return None

    return pair


def fill_calamint(url: str, count: int) -> None:
    """Rows as two jobs that were asked for and told have left them, so many times."""
    from sqlalchemy import create_engine, insert, select, update

    from calamint.run.store import schema

    pair = open_calamint(url)
    pair()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    inputs = np.random.default_rng(0).random((count, len(NAMES))).tolist()
    with engine.begin() as connection:

        def first(table: Any) -> dict[str, Any]:
            return dict(connection.execute(select(table)).mappings().first() or {})

        job, attempt, decision, measured = map(
            first, (schema.jobs, schema.attempts, schema.decisions, schema.measurements)
        )
        asked, told = (
            dict(row) for row in connection.execute(select(schema.events)).mappings().all()
        )
        rows: dict[Any, list[dict[str, Any]]] = {
            schema.jobs: [],
            schema.attempts: [],
            schema.decisions: [],
            schema.measurements: [],
            schema.events: [],
        }
        for number in range(1, count):
            params, own = dict(zip(NAMES, inputs[number], strict=True)), {"id": number + 1}
            last = 2 * number + 2
            rows[schema.jobs].append(
                {**job, **own, "number": number, "params": params, "decision": number}
            )
            rows[schema.attempts].append({**attempt, **own, "job_id": number + 1})
            rows[schema.decisions].append({**decision, **own, "number": number})
            rows[schema.measurements].append(
                {**measured, **own, "job_id": number + 1, "sequence": last, "params": params}
                | {"value": value(params)}
            )
            rows[schema.events].append({**asked, "job": number, "sequence": last - 1})
            rows[schema.events].append({**told, "job": number, "sequence": last})
        for table, content in rows.items():
            for begin in range(0, len(content), 5000):
                connection.execute(insert(table), content[begin : begin + 5000])
            if url.startswith("postgresql") and "id" in table.c:
                connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), {count})"
                )
        connection.execute(update(schema.studies).values(sequence=2 * count))
    engine.dispose()


# -- Optuna ----------------------------------------------------------------------------------------


def open_optuna(url: str) -> Pair:
    import optuna

    study = _optuna_study(url)
    space: Any = {name: optuna.distributions.FloatDistribution(0, 1) for name in NAMES}

    def pair() -> None:
        trial = study.ask(space)
        study.tell(trial, value(trial.params))

    return pair


def _optuna_study(url: str) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        storage=url.replace("postgresql:", "postgresql+psycopg:"),
        sampler=optuna.samplers.RandomSampler(),
        study_name="study",
        load_if_exists=True,
    )


def fill_optuna(url: str, count: int) -> None:
    import optuna
    from sqlalchemy import create_engine, insert, text

    study = _optuna_study(url)
    space: Any = {name: optuna.distributions.FloatDistribution(0, 1) for name in NAMES}
    trial = study.ask(space)
    study.tell(trial, value(trial.params))
    models = optuna.storages._rdb.models
    inputs = np.random.default_rng(0).random((count, len(NAMES))).tolist()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    tables = (models.TrialModel, models.TrialParamModel, models.TrialValueModel)
    with engine.begin() as connection:
        firsts = [
            dict(connection.execute(model.__table__.select()).mappings().first() or {})
            for model in tables
        ]
        rows: list[list[dict[str, Any]]] = [[], [], []]
        for number in range(1, count):
            own = {"trial_id": number + 1}
            rows[0].append({**firsts[0], **own, "number": number})
            for index, name in enumerate(NAMES):
                key = {"param_id": len(NAMES) * number + index + 1, "param_name": name}
                rows[1].append({**firsts[1], **own, **key, "param_value": inputs[number][index]})
            total = {"trial_value_id": number + 1, "value": sum(inputs[number])}
            rows[2].append({**firsts[2], **own, **total})
        for model, content in zip(tables, rows, strict=True):
            for begin in range(0, len(content), 5000):
                connection.execute(insert(model.__table__), content[begin : begin + 5000])
            if url.startswith("postgresql"):
                (key,) = model.__table__.primary_key.columns
                connection.execute(
                    text(
                        f"SELECT setval(pg_get_serial_sequence('{model.__tablename__}',"
                        f" '{key.name}'), {len(content) + len(content) // max(count - 1, 1)})"
                    )
                )
    engine.dispose()


OPEN = {"Calamint": open_calamint, "Optuna": open_optuna}
FILL = {"Calamint": fill_calamint, "Optuna": fill_optuna}


# -- measuring -------------------------------------------------------------------------------------


def work(tool: str, url: str, ready: Barrier, counts: Any) -> None:
    begin = time.perf_counter()
    pair = OPEN[tool](url)
    pair()  # it reads what is there
    opened = time.perf_counter() - begin
    ready.wait()
    done, until = 0, time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        pair()
        done += 1
    counts.put((done, opened))


def measure(tool: str, url: str, finished: int, processes: int) -> tuple[float, float]:
    """Pairs a second, and the seconds that opening took."""
    if finished:
        FILL[tool](url, finished)
    else:
        OPEN[tool](url)
    context = get_context("spawn")
    ready, counts = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=work, args=(tool, url, ready, counts)) for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    found = [counts.get() for _ in workers]
    for worker in workers:
        worker.join()
    return sum(done for done, _ in found) / SECONDS, max(opened for _, opened in found)


@contextmanager
def places() -> Iterator[Callable[[str], str]]:
    """URLs of new storages."""
    import psycopg
    from pgserver import get_server  # type: ignore[attr-defined]

    folder, numbers = tempfile.mkdtemp(), iter(range(1000))
    server = get_server(f"{folder}/server", cleanup_mode="stop")

    def new(storage: str) -> str:
        number = next(numbers)
        if storage == "SQLite":
            return f"sqlite:///{folder}/{number}.db"
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE storage{number}")
        return str(server.get_uri(f"storage{number}"))

    try:
        yield new
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pairs of ask and tell a second.")
    parser.add_argument("--finished", type=int, nargs="*", default=FINISHED)
    parser.add_argument("--tools", nargs="*", default=TOOLS)
    parser.add_argument("--storages", nargs="*", default=STORAGES)
    parser.add_argument("--processes", type=int, nargs="*", default=PROCESSES)
    options = parser.parse_args()
    lines = [
        "| storage | finished jobs | processes"
        + "".join(f" | {tool}: pairs a second | opening, s" for tool in options.tools)
        + " | ratio |",
        f"|{'---|' * (4 + 2 * len(options.tools))}",
    ]
    print("\n".join(lines))
    with places() as new:
        for storage in options.storages:
            for finished in options.finished:
                for processes in options.processes:
                    if finished == 100_000 and processes > 1:
                        continue  # each would read all of them: minutes
                    found = [
                        measure(tool, new(storage), finished, processes) for tool in options.tools
                    ]
                    cells = "".join(f" | {rate:.1f} | {opened:.2f}" for rate, opened in found)
                    ratio = f"{found[0][0] / found[-1][0]:.2f}"
                    line = f"| {storage} | {finished} | {processes}{cells} | {ratio} |"
                    lines.append(line)
                    print(line, flush=True)
    if (options.finished, options.tools, options.storages) == (FINISHED, TOOLS, STORAGES):
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        ).stdout.strip()
        table = "\n".join(lines)
        text = f"# What storages take\n\n{__doc__}\nAt {commit}.\n\n{table}\n"
        (RESULTS / "storage.md").write_text(text)


if __name__ == "__main__":
    main()
