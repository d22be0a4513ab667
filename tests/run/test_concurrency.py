"""Many processes ask and tell one study at once."""

import os
import time

import pytest
from tests.run.cases import check_books, quick, values_of
from tests.run.test_kill import Log, forked


def busy(url, log, seconds):
    study = quick(storage=url)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        job = study.ask()
        if job is None:
            time.sleep(0.001)
            continue
        values = values_of(job.task, job.params)
        assert study.tell(job, values)
        log.write("told", job.number, "")


@pytest.mark.parametrize(
    ("processes", "seconds"), [(4, 4), pytest.param(8, 60, marks=pytest.mark.slow)]
)
def test_many_processes_share_a_study(tmp_path, processes, seconds, capsys):
    path, log = tmp_path / "a.db", Log(tmp_path / "a.log")
    url = f"sqlite:///{path}"
    # They also create it at the same moment.
    pids = [forked(busy, url, log, seconds) for _ in range(processes)]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * processes
    found = check_books(path)
    told = [int(number) for _, number, *_ in log.lines()]
    assert len(told) == len(set(told))
    done = {row["number"] for row in found["jobs"] if row["state"] == "done"}
    assert set(told) == done
    assert len(found["measurements"]) == len(told)
    # Everybody sees the same.
    study = quick(storage=url)
    assert len(study.history) == len(told)
    with capsys.disabled():
        rate = len(told) / seconds
        print(f"\n{processes} processes: {rate:.0f} ask/tell pairs a second, all there once")
    assert len(told) > seconds
