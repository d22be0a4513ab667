"""The ladder of degradation: a decision always comes back, by a simpler way if need be.

    sampled model  ->  MAP model  ->  last good model  ->  space-filling input

A failure of numerics steps down. So does any other exception, which is a bug: it is logged with its
traceback. Under CALAMINT_STRICT=1, which the tests set, bugs raise. What went wrong is kept with
the decision, either way.
"""

import logging
import os
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from calamint.errors import CalamintError

LOG = logging.getLogger("calamint")
# RuntimeWarning is what NumPy raises for an overflow where warnings are errors.
NUMERICAL = (np.linalg.LinAlgError, ArithmeticError, RuntimeWarning)

T = TypeVar("T")


def first_that_works(
    rungs: Iterable[tuple[str, Callable[[], T]]],
) -> tuple[T | None, tuple[str, ...]]:
    """The result of the first rung that gives one, and what went wrong with those above it.

    rungs  names, with what to try

    An error of Calamint's own is about a function of the user's, and only they can mend it: it is
    raised.
    """
    warnings: list[str] = []
    for name, attempt in rungs:
        try:
            return attempt(), tuple(warnings)
        except CalamintError:
            raise
        except NUMERICAL as error:
            warnings.append(f"{name}: {type(error).__name__}: {error}")
            LOG.warning("%s; trying a simpler one", warnings[-1])
        except Exception as error:
            if os.environ.get("CALAMINT_STRICT") == "1":
                raise
            warnings.append(f"{name}: {type(error).__name__}: {error}")
            LOG.warning("%s; trying a simpler one", warnings[-1], exc_info=True)
    return None, tuple(warnings)
