"""Doing it."""
