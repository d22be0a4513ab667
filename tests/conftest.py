"""Settings for all tests: the same examples on every machine, and no clocks in property tests."""

from hypothesis import settings

settings.register_profile("calamint", deadline=None, derandomize=True)
settings.load_profile("calamint")
