"""Threads change when things are computed, never what."""

import threading
import warnings

import numpy as np
import pytest

from calamint.threads import parallel_map, usable_cores, worker_threads


def test_results_are_in_order_whoever_is_first():
    both_run = threading.Barrier(2, timeout=30)

    def slow_first(item):
        if item < 2:
            both_run.wait()
        return item, threading.get_ident()

    with worker_threads(2):
        found = parallel_map(slow_first, range(20))
    assert [item for item, _ in found] == list(range(20))
    assert threading.get_ident() not in {thread for _, thread in found}


def test_without_worker_threads_nothing_leaves_the_thread():
    def thread(_):
        return threading.get_ident()

    assert set(parallel_map(thread, range(5))) == {threading.get_ident()}
    with worker_threads(1):
        assert set(parallel_map(thread, range(5))) == {threading.get_ident()}
    with worker_threads(2):
        pass
    assert set(parallel_map(thread, range(5))) == {threading.get_ident()}


def test_pieces_of_pieces_do_not_wait_for_each_other():
    with worker_threads(2):
        found = parallel_map(lambda n: parallel_map(lambda m: n * m, range(50)), range(50))
    assert found == [[n * m for m in range(50)] for n in range(50)]


def test_an_error_is_raised_where_the_work_was_asked_for():
    def fail(item):
        if item == 3:
            raise ValueError("three")
        return item

    with worker_threads(2), pytest.raises(ValueError, match="three"):
        parallel_map(fail, range(10))


def test_numpy_is_as_quiet_as_around_the_call():
    with warnings.catch_warnings(), worker_threads(2), np.errstate(divide="ignore"):
        warnings.simplefilter("error")
        assert parallel_map(lambda x: np.float64(1.0) / x, [0.0, 0.0]) == [np.inf, np.inf]


def test_there_is_a_core():
    assert usable_cores() >= 1
