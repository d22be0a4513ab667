"""The tables of a storage. Times are seconds since 1970; parameters and values are the user's own.

A study is its events in order (`sequence`): replayed, they give the state of its optimiser. The
other tables say what the events are about. `docs/storage.md` explains every column.
"""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

# The migration that made these tables what they are.
REVISION = "0005"

metadata = MetaData()


def _study() -> Column[int]:
    return Column("study_id", ForeignKey("studies.id"), nullable=False)


studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    # What no other study has, wherever it is stored.
    Column("uid", String(32), nullable=False),
    Column("created", Float, nullable=False),
    Column("problem", JSON, nullable=False),
    Column("settings", JSON, nullable=False),
    # How many events there are, and how often the problem was changed.
    Column("sequence", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    # What survives between decisions: the last full update and its hyper-parameters.
    Column("state", JSON),
    # Who is deciding, and how long that is believed: one decides at a time.
    Column("decider", Text),
    Column("decider_boot", Text),
    Column("decider_until", Float),
    Column("decider_renewals", Integer, nullable=False, server_default="0"),
)
tasks = Table(
    "tasks",
    metadata,
    _study(),
    Column("name", String(200), nullable=False),
    Column("measures", JSON, nullable=False),
    Column("runs_on", JSON, nullable=False),
    Column("cost", Text, nullable=False),
    Column("command", JSON),
    Column("failures", String(20), nullable=False),
    UniqueConstraint("study_id", "name"),
)
resources = Table(
    "resources",
    metadata,
    _study(),
    Column("name", String(200), nullable=False),
    Column("capacity", Integer, nullable=False),
    UniqueConstraint("study_id", "name"),
)
jobs = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True),
    _study(),
    Column("number", Integer, nullable=False),
    Column("task", String(200), nullable=False),
    Column("params", JSON, nullable=False),
    Column("resources", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created", Float, nullable=False),
    Column("not_before", Float),
    Column("ended", Float),
    Column("seconds", Float),
    Column("cause", String(20)),
    Column("reason", Text),
    Column("bits", JSON, nullable=False),
    Column("predicted_cost", Float),
    Column("scores", JSON, nullable=False),
    Column("decision", Integer),
    UniqueConstraint("study_id", "number"),
)
Index("ix_jobs_state", jobs.c.study_id, jobs.c.state)
attempts = Table(
    "attempts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("job_id", ForeignKey("jobs.id"), nullable=False),
    _study(),
    Column("number", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("resources", JSON, nullable=False),
    Column("started", Float, nullable=False),
    Column("heartbeat", Float, nullable=False),
    # Seconds that a renewal is good for; until when, by the clock of which boot of a machine.
    Column("lease", Float),
    Column("lease_until", Float),
    Column("boot", Text),
    Column("renewals", Integer, nullable=False, server_default="0"),
    Column("ended", Float),
    Column("outcome", String(20)),
    Column("cause", String(20)),
    Column("reason", Text),
    UniqueConstraint("job_id", "number"),
)
Index("ix_attempts_open", attempts.c.study_id, attempts.c.outcome)
measurements = Table(
    "measurements",
    metadata,
    Column("id", Integer, primary_key=True),
    _study(),
    Column("sequence", Integer, nullable=False),
    Column("job_id", ForeignKey("jobs.id")),
    Column("attempt", Integer),
    Column("params", JSON, nullable=False),
    Column("function", String(200), nullable=False),
    Column("value", Float, nullable=False),
    Column("sem", Float),
    Column("used", Boolean, nullable=False),
)
Index("ix_measurements_sequence", measurements.c.study_id, measurements.c.sequence)
decisions = Table(
    "decisions",
    metadata,
    Column("id", Integer, primary_key=True),
    _study(),
    Column("number", Integer, nullable=False),
    Column("made", Float, nullable=False),
    Column("update_kind", String(20), nullable=False),
    Column("stage_seconds", JSON, nullable=False),
    Column("warnings", JSON, nullable=False),
    # What was free when tasks competed; empty if one task was asked for.
    Column("free", JSON),
    UniqueConstraint("study_id", "number"),
)
recommendations = Table(
    "recommendations",
    metadata,
    Column("id", Integer, primary_key=True),
    _study(),
    Column("sequence", Integer, nullable=False),
    Column("made", Float, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("params", JSON, nullable=False),
    Column("objective", Float, nullable=False),
    Column("probability", Float, nullable=False),
    Column("confident", Boolean, nullable=False),
    Column("interval", JSON),
    Column("confirmed", Boolean),
)
events = Table(
    "events",
    metadata,
    _study(),
    Column("sequence", Integer, nullable=False),
    Column("time", Float, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("job", Integer),
    Column("attempt", Integer),
    Column("detail", JSON),
    # Who caused it, if not the user of the process that wrote it; by which request, if that had a
    # key, and the digest of that request.
    Column("caller", Text),
    Column("request", String(200)),
    Column("digest", String(64)),
    UniqueConstraint("study_id", "sequence"),
)
Index("ix_events_request", events.c.study_id, events.c.request, unique=True)
Index("ix_events_job", events.c.study_id, events.c.job)
tokens = Table(
    "tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    # SHA-256 of the token, which is not kept.
    Column("hash", String(64), nullable=False),
    Column("right", String(20), nullable=False),
    Column("resources", JSON, nullable=False),
    # The only study that it is for, or all.
    Column("study_id", ForeignKey("studies.id")),
    Column("created", Float, nullable=False),
    Column("revoked", Float),
)
