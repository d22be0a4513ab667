"""One BLAS thread while deciding: the matrices are small, and threads would wait for each other.

Processes that decide side by side, with more BLAS threads than cores, slow each other down.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def single_threaded(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with BLAS limited to one thread."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
