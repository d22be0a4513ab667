"""What runs that are gone have left: results in files, and jobs that go on without them."""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from calamint.errors import ResultError
from calamint.run.execute import Executor
from calamint.run.jobs import Job
from calamint.run.outcomes import named

if TYPE_CHECKING:
    from calamint.run.study import Study

LOG = logging.getLogger("calamint")


def store_spooled(study: "Study", executor: Executor) -> list[Job]:
    """Store results that nobody lived to store; the jobs that are stored by that."""
    taken = []
    for found in executor.spooled():
        replica = study.replica()
        if found.job not in replica.jobs:
            continue
        job = replica.attempt(found.job, found.attempt)
        try:
            if found.error is None:
                study.tell(job, named(found.values, study.problem.tasks[job.task].measures))
            else:
                study.fail(job, found.error, found.cause or "crashed")
            taken.append(job)
        except ResultError as refused:
            LOG.info("a result of job %d was not taken: %s", job.number, refused)
        executor.discard(found.file)
    return taken


def adopt_running(study: "Study", executor: Executor, own: set[Job], lease: float) -> list[Job]:
    """Jobs that go on though their owner is gone, and that are ours from now on."""
    replica = study.replica()
    others = [
        job
        for key, resources in list(replica.open.items())
        if (job := replace(replica.attempt(*key), resources=resources)) not in own
    ]
    adopted = []
    for job in executor.still_running(others) if others else []:
        if study.adopt(job, lease):
            executor.listen(job)
            adopted.append(job)
    return adopted
