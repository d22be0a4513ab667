"""Recorded histories of studies: what was asked for, told and recommended, with every digit.

    .venv/bin/python -m tests.run.histories NAME ...      # records them anew

They were recorded before the code that decides was taken apart, and `test_histories.py` replays
them: a decision is a function of what was seen, so on the same history it is the same decision.
"""
