"""Recommendations with their intervals, and whether measurements confirmed them."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("recommendations", sa.Column("interval", sa.JSON()))
    op.add_column("recommendations", sa.Column("confirmed", sa.Boolean()))
