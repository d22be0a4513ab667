"""Who caused an event, requests that are made once, and tokens of those who may make them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("events", sa.Column("caller", sa.Text()))
    op.add_column("events", sa.Column("request", sa.String(200)))
    op.add_column("events", sa.Column("digest", sa.String(64)))
    op.create_index("ix_events_request", "events", ["study_id", "request"], unique=True)
    op.create_index("ix_events_job", "events", ["study_id", "job"])
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("right", sa.String(20), nullable=False),
        sa.Column("resources", sa.JSON(), nullable=False),
        sa.Column("study_id", sa.Integer(), sa.ForeignKey("studies.id")),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("revoked", sa.Float()),
    )
