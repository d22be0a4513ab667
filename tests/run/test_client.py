"""The client: what it makes of servers that are none, of addresses, forks, and strange values."""

import multiprocessing
import os
import pickle
import signal
import traceback

import pytest
from tests.run.cases import quick
from tests.run.served import serving

import calamint as cm
from calamint.run import client as client_module


@pytest.fixture
def study(tmp_path):
    return quick(storage=f"sqlite:///{tmp_path / 'a.db'}")


@pytest.fixture
def remote(study):
    with serving(study.database) as url:
        yield cm.connect(url)


# -- processes --------------------------------------------------------------------------------


def enqueues(remote, share):
    """Queue jobs at inputs of its own; the numbers that it is told must be theirs."""
    for turn in range(8):
        x = (share * 100 + turn) / 1000
        number = remote.enqueue("price", {"x": x, "y": 0.5})
        assert remote.jobs[number].params["x"] == x


def test_forked_processes_are_given_their_own_answers(study, remote):
    children = []
    for share in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                signal.alarm(30)  # an answer that another one has read never comes
                enqueues(remote, share)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    enqueues(remote, 3)  # over the connection that they were forked with
    assert len(study.jobs) == 32


def asks(remote):
    remote.enqueue("price", {"x": 0.25, "y": 0.5})


def test_a_study_can_be_sent_to_another_process(study, remote):
    again = pickle.loads(pickle.dumps(remote))
    assert (again.name, again.uid, str(again)) == (remote.name, remote.uid, str(remote))
    process = multiprocessing.get_context("spawn").Process(target=asks, args=(remote,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert again.ask().params == {"x": 0.25, "y": 0.5}


def test_a_pickle_keeps_how_the_server_is_reached():
    made = client_module.Client("http://lab:8000", "calamint_1_x", patience=7.0)
    again = pickle.loads(pickle.dumps(made))
    assert (again.url, again.patience) == ("http://lab:8000", 7.0)
    assert again._token == "calamint_1_x"
