"""The server: a dashboard for people, and an API for programs."""
