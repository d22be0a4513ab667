"""Telling people: displays, plots and reports."""
