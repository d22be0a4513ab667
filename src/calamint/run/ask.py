"""The next job of a study: one that waits, or one that is decided now; booked before it is
answered.

One process decides at a time; others wait, and go on with what is left. They may still book jobs
that wait, or change the problem, while a decision is made. Then it is made again, knowing that. A
decision that needs no model is made in the transaction that books it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import final

from calamint.checks import finite
from calamint.decide import CanStart, State, Suggestion, anywhere, available_resources
from calamint.errors import ExhaustedError, ProblemError
from calamint.run.jobs import Job
from calamint.run.replay import Replica
from calamint.run.store import Booking, Store, Turn, retried


@final
@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        resource: Only jobs on this resource, or of this task.
        task: Only jobs on this resource, or of this task.
        lease: Seconds after which a job is given back, unless its lease is renewed.
        bits: Nothing that yields less is booked: `ExhaustedError` is raised.
        decide: Without it, only jobs that wait are started.
        confirm: Measure the recommended input where it was not measured, if something is missing.
        alive: Attempts (job, attempt) that are not lost, whatever their leases say.
        beyond: Book a job even if its resources are taken; it then has none.
        can_start: Whether a job on some resources could be started now, if they are free.
    """

    resource: str | None = None
    task: str | None = None
    lease: float | None = None
    bits: float | None = None
    decide: bool = True
    confirm: bool = False
    alive: Collection[tuple[int, int]] = ()
    beyond: bool = False
    can_start: CanStart = anywhere


def next_job(store: Store, turn: Turn, replica: Replica, request: Request) -> Job | None:
    """The next job, with its resources booked; None while nothing can start."""
    ours = False
    try:
        while True:
            replica.sync()
            if replica.open and store.reap(request.alive):
                replica.sync()
            free, competing = _competing(replica, request)
            job = _start_waiting(store, replica, request, free)
            if job is not None or not competing or not request.decide:
                return job
            if not request.confirm and not replica.optimizer.needs_model(competing):
                job = _decide_at_once(store, replica, request)
                if job is not None:
                    return job
                continue
            if not ours:
                # Whoever had the turn before may have changed what is known.
                ours = turn.take()
                continue
            with turn.kept():
                made = _decide(store, replica, request, free, competing)
            if made is None:
                return None
            state, booking = made
            full = state.full
            if full is not None and full.decision != booking.suggestion.number:
                full = None  # it is that of an earlier decision
            if store.book(booking, replica.revision, full):
                ours = False  # it ended with the booking
                replica.decided(booking.suggestion.number, state)
                return _job(replica, booking.suggestion, 1, booking.suggestion.resources)
    finally:
        if ours:
            turn.give_up()


def _competing(
    replica: Replica, request: Request
) -> tuple[dict[str, int], dict[str, tuple[str, ...]]]:
    """What is free, and the tasks that compete for it."""
    free = replica.free
    if request.beyond:
        paused = {name for kind, name in replica.paused if kind == "resource"}
        free = {each: 0 if each in paused else max(n, 1) for each, n in free.items()}
    competing = replica.optimizer.competing(
        free, request.resource, request.task, replica.paused_tasks, request.can_start
    )
    return free, competing


@retried
def _decide_at_once(store: Store, replica: Replica, request: Request) -> Job | None:
    """A decision that takes no time, made while nobody else can book; None if what is known by then
    makes it another one."""
    with store.database.write(store.study) as connection:
        replica.sync(connection)
        free, competing = _competing(replica, request)
        if not competing or replica.optimizer.needs_model(competing):
            return None
        made = _decide(store, replica, request, free, competing)
        if made is None:
            return None
        state, booking = made
        store.insert(connection, booking)
    replica.decided(booking.suggestion.number, state)
    return _job(replica, booking.suggestion, 1, booking.suggestion.resources)


def _decide(
    store: Store,
    replica: Replica,
    request: Request,
    free: Mapping[str, int],
    competing: Mapping[str, tuple[str, ...]],
) -> tuple[State, Booking] | None:
    """A decision, and the state after it; None while a confirmation is under way."""
    optimizer = replica.optimizer
    paused = replica.paused_tasks
    confirmation = None
    if request.confirm:
        confirmation = optimizer.decide_confirmation(free, paused, request.can_start)
    if confirmation == "wait":
        if replica.open:
            return None  # what is left of the budget is for it
        confirmation = None
    state, suggestion, decision = confirmation or optimizer.decide(competing)
    expected = sum(suggestion.bits.values())
    if request.bits is not None and suggestion.bits and expected < request.bits:
        raise ExhaustedError(f"the best job is expected to yield {expected:.3g} bits")
    suggestion = replace(suggestion, resources=_booked(replica, request, suggestion.resources))
    competed = request.task is None and confirmation is None and not request.beyond
    contested = free if competed else None
    return state, Booking(suggestion, decision, contested, store.owner, request.lease)


def _start_waiting(
    store: Store, replica: Replica, request: Request, free: Mapping[str, int]
) -> Job | None:
    """A job that was enqueued, or is to be tried again, if its time has come."""
    for number, not_before in sorted(replica.waiting.items()):
        task = replica.jobs[number].task
        if not_before > replica.lease_clock.now() or request.task not in (None, task):
            continue
        if task in replica.paused_tasks:
            continue
        place = available_resources(
            replica.problem.graph, task, free, request.resource, request.can_start
        )
        if place is None:
            continue
        place = _booked(replica, request, place)
        attempt = store.start(number, place, replica.revision, store.owner, request.lease)
        if attempt is not None:
            return _job(replica, replica.jobs[number], attempt, place)
    return None


def _booked(replica: Replica, request: Request, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The resources of a job; none if they are taken, and it is to be booked all the same."""
    free = replica.free
    return () if request.beyond and any(free[each] < 1 for each in wanted) else wanted


def _job(replica: Replica, made: Suggestion, attempt: int, resources: tuple[str, ...]) -> Job:
    return Job(
        made.number,
        made.task,
        dict(made.params),
        resources,
        attempt,
        suggestion=replace(made, resources=resources),
        study=replica.uid,
    )


def check_lease(lease: object) -> None:
    """Raise `ProblemError` for a lease that is not a positive number of seconds."""
    number = finite(lease)
    if number is None or number <= 0:
        raise ProblemError(f"lease is {lease!r}: write a positive number of seconds.")
