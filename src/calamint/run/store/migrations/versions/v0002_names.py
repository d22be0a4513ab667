"""Columns by the names that they have in the code; one setting for retries."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

RENAMED = (
    ("studies", "memory", "state"),
    ("jobs", "worth", "scores"),
    ("measurements", "noise", "sem"),
    ("decisions", "kind", "update_kind"),
    ("decisions", "seconds", "stage_seconds"),
)


def upgrade() -> None:
    for table, old, new in RENAMED:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    connection = op.get_bind()
    studies = sa.table("studies", sa.column("id"), sa.column("settings", sa.JSON))
    for study, settings in connection.execute(sa.select(studies.c.id, studies.c.settings)).all():
        settings["retries"] = settings.pop("attempts") - 1
        settings["couple"] = False
        settings["model"]["noise_variance"] = settings["model"].pop("noise")
        connection.execute(studies.update().where(studies.c.id == study).values(settings=settings))
