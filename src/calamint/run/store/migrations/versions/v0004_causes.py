"""Why attempts ended, leases on a clock that cannot be set, and one that decides at a time."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("studies", sa.Column("uid", sa.String(32), nullable=False, server_default=""))
    studies = sa.table("studies", sa.column("id", sa.Integer), sa.column("uid", sa.String))
    connection = op.get_bind()
    for (number,) in connection.execute(sa.select(studies.c.id)).all():
        named = studies.update().where(studies.c.id == number).values(uid=secrets.token_hex(16))
        connection.execute(named)
    op.add_column("studies", sa.Column("decider", sa.Text()))
    op.add_column("studies", sa.Column("decider_boot", sa.Text()))
    op.add_column("studies", sa.Column("decider_until", sa.Float()))
    count = sa.Column("decider_renewals", sa.Integer(), nullable=False, server_default="0")
    op.add_column("studies", count)
    op.add_column("jobs", sa.Column("cause", sa.String(20)))
    op.add_column("attempts", sa.Column("lease", sa.Float()))
    op.add_column("attempts", sa.Column("boot", sa.Text()))
    op.add_column(
        "attempts", sa.Column("renewals", sa.Integer(), nullable=False, server_default="0")
    )
    op.add_column("attempts", sa.Column("cause", sa.String(20)))
    # Leases of before ended by the wall clock: those that are open are given half a minute.
    attempts = sa.table(
        "attempts",
        *(sa.column(name, sa.Float) for name in ("lease", "lease_until")),
        *(sa.column(name, sa.String) for name in ("outcome", "cause")),
    )
    open_leases = attempts.c.outcome.is_(None) & attempts.c.lease_until.is_not(None)
    connection.execute(attempts.update().where(open_leases).values(lease=30.0))
    lost = attempts.update().where(attempts.c.outcome == "lost").values(cause="lost")
    connection.execute(lost)
