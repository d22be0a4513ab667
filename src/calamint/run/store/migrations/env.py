"""Alembic's entry point; the connection, in a transaction, comes from `store.database`."""

from alembic import context

from calamint.run.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
