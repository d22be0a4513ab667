"""Doing it: studies, storage and executors."""
