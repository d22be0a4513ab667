"""Drawing in the background, one thing after the other."""

import threading

import pytest
from tests.run.cases import quick

from calamint.show.serve import drawing
from calamint.show.serve.draw import Drawing
from calamint.show.serve.drawing import Drawings, Wanted


@pytest.fixture
def drawings(tmp_path, monkeypatch):
    """Some, whose drawing is up to the test."""
    study = quick(storage=f"sqlite:///{tmp_path / 'a.db'}")
    drew = threading.Semaphore(0)
    monkeypatch.setattr(drawing, "_PAUSE", 0.0)
    made = Drawings(study.database, False, lambda _: drew.release())
    made.drew = drew
    yield made
    made.stop()


def test_what_fails_does_not_keep_others_from_being_drawn(drawings, monkeypatch, caplog):
    def failing(_, wanted):
        if wanted.what == "trust":
            raise RecursionError("too deep")
        return Drawing(wanted.what, 1)

    monkeypatch.setattr(Drawings, "_draw", failing)
    for what in ("trust", "progress"):
        drawings.ask(Wanted.of(1, what), 1)
        assert drawings.drew.acquire(timeout=10)
    assert "could not be drawn" in drawings.known(Wanted.of(1, "trust")).html
    assert drawings.known(Wanted.of(1, "progress")).html == "progress"
    assert "too deep" in caplog.text


def test_what_was_never_drawn_comes_before_what_is_renewed(drawings, monkeypatch):
    order, go_on = [], threading.Semaphore(0)

    def waiting(_, wanted):
        go_on.acquire(timeout=10)
        order.append(wanted.what)
        return Drawing(wanted.what, len(order))

    monkeypatch.setattr(Drawings, "_draw", waiting)
    drawings.ask(Wanted.of(1, "trust"), 1)
    go_on.release()
    assert drawings.drew.acquire(timeout=10)
    for sequence, what in enumerate(("limits", "progress", "trust")):  # the first begins at once
        drawings.ask(Wanted.of(1, what), 10 + sequence)
        threading.Event().wait(0.2)
    for _ in range(3):
        go_on.release()
        assert drawings.drew.acquire(timeout=10)
    assert order == ["trust", "limits", "progress", "trust"]


def test_old_drawings_are_forgotten(drawings, monkeypatch):
    monkeypatch.setattr(drawing, "_MOST_KEPT", 3)
    monkeypatch.setattr(Drawings, "_draw", lambda _, wanted: Drawing(wanted.options, 1))
    for each in range(5):
        drawings.ask(Wanted.of(1, "belief", along=[str(each)]), 1)
        assert drawings.drew.acquire(timeout=10)
    kept = [drawings.known(Wanted.of(1, "belief", along=[str(each)])) for each in range(5)]
    assert [each is not None for each in kept] == [False, False, True, True, True]
