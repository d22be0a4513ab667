"""Settings for all tests: the same examples on every machine, and no clocks in property tests."""

import os

# Before NumPy is loaded: tests run side by side, and small matrices want one thread anyway.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A bug in a decision raises, instead of being logged while a simpler way is taken.
os.environ["CALAMINT_STRICT"] = "1"

from hypothesis import settings

settings.register_profile("calamint", deadline=None, derandomize=True)
settings.load_profile("calamint")
