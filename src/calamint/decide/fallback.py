"""Graceful degradation: a decision is always returned, by another method if the first one fails.

    full update due:     sampled model  ->  MAP model  ->  last model  ->  space-filling input
    partial update due:  last model  ->  sampled model  ->  MAP model  ->  space-filling input

After a numerical error the next method is tried. So it is after any other exception, but that is a
bug, and is logged with its traceback; under CALAMINT_STRICT=1, which the tests set, it is raised.
What went wrong is recorded in the decision's warnings.
"""

import logging
import os
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from calamint.errors import CalamintError

LOG = logging.getLogger("calamint")
# NumPy's overflows are RuntimeWarnings, which are raised where warnings are errors.
NUMERICAL_ERRORS = (np.linalg.LinAlgError, ArithmeticError, RuntimeWarning)

T = TypeVar("T")


def first_success(
    attempts: Iterable[tuple[str, Callable[[], T]]],
) -> tuple[T | None, tuple[str, ...]]:
    """The first result, or None if every attempt fails; and the errors of the attempts before it.

    Args:
        attempts: Names and callables, in the order in which to try them.

    Raises:
        CalamintError: About a function that the user supplied, which no other method can mend.
    """
    warnings: list[str] = []
    for name, attempt in attempts:
        try:
            return attempt(), tuple(warnings)
        except CalamintError:
            raise
        except NUMERICAL_ERRORS as error:
            warnings.append(f"{name}: {type(error).__name__}: {error}")
            LOG.warning("%s; trying the next method", warnings[-1])
        except Exception as error:
            if os.environ.get("CALAMINT_STRICT") == "1":
                raise
            warnings.append(f"{name}: {type(error).__name__}: {error}")
            LOG.warning("%s; trying the next method", warnings[-1], exc_info=True)
    return None, tuple(warnings)
