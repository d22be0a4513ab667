"""Problems and helpers that the tests of studies share."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys

import calamint as cm

SQUARE = {"x": cm.Real(0, 1), "y": cm.Real(0, 1)}


def decoupled(**changes):
    """Two tasks on two resources; the second may be tried again."""
    problem = cm.Problem(
        SQUARE,
        minimize="f",
        constraints=["c >= 0"],
        tasks={
            "price": cm.Task("f", runs_on=["office"]),
            "weigh": cm.Task("c", runs_on=["hall", "office"], failures="retry"),
        },
        resources={"office": 1, "hall": 2},
    )
    return problem.changed(**changes) if changes else problem


def values_of(task, params):
    truth = {"f": params["x"] + params["y"], "c": params["x"] - 0.2 + 0.5 * params["y"]}
    return {"price": {"f": truth["f"]}, "weigh": {"c": truth["c"]}}.get(task, truth)


def quick(problem=None, storage="sqlite://", **settings):
    """A study that decides without thinking."""
    settings = {"acquisition": "random", "seed": 3, **settings}
    return cm.Study(problem or decoupled(), storage, **settings)


def tables(path):
    """Rows of every table of a file or a URL, read without Calamint."""
    if str(path).startswith("postgresql:"):
        return _server_tables(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        return {
            name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")]
            for name in names
        }


def _server_tables(url):
    import psycopg
    from psycopg.rows import dict_row

    def plain(value):
        return json.dumps(value) if isinstance(value, dict | list) else value

    with psycopg.connect(url, row_factory=dict_row) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        return {
            row["tablename"]: [
                {key: plain(value) for key, value in each.items()}
                for each in connection.execute(f"SELECT * FROM {row['tablename']}").fetchall()
            ]
            for row in names
        }


def check_books(path):
    """What must hold of a study's tables at any moment."""
    found = tables(path)
    capacity = {row["name"]: row["capacity"] for row in found["resources"]}
    jobs = {row["id"]: row for row in found["jobs"]}
    assert len({(row["job_id"], row["number"]) for row in found["attempts"]}) == len(
        found["attempts"]
    )
    # At no moment more attempts than capacity: between the start and the end of each.
    changes = []
    for row in found["attempts"]:
        for resource in json.loads(row["resources"]):
            changes.append((row["started"], 1, resource))
            if row["ended"] is not None:
                changes.append((row["ended"], 0, resource))
    used = dict.fromkeys(capacity, 0)
    for _, starts, resource in sorted(changes, key=lambda change: change[:2]):
        used[resource] += 1 if starts else -1
        assert used[resource] <= capacity[resource]
    done = {row["job_id"] for row in found["attempts"] if row["outcome"] == "done"}
    ended = ("done", "failed", "partial", "withdrawn")
    assert done <= {i for i, row in jobs.items() if row["state"] in ended}
    completed = {row["job"] for row in found["events"] if row["kind"] == "completed"}
    done |= {i for i, row in jobs.items() if row["number"] in completed}
    open_ones = {row["job_id"] for row in found["attempts"] if row["outcome"] is None}
    for i, row in jobs.items():
        if row["state"] == "done":
            assert i in done
        if row["state"] == "running":
            assert i in open_ones
        if row["state"] == "waiting":
            assert i not in open_ones
    used_by = {row["job_id"] for row in found["measurements"] if row["used"] and row["job_id"]}
    assert used_by <= done
    sequences = [row["sequence"] for row in found["events"]]
    assert sorted(sequences) == list(range(1, len(sequences) + 1))
    return found


def python(script, *arguments, **options):
    """A Python process that runs a script's text."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], env=environment, **options
    )
