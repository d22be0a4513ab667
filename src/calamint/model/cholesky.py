"""Cholesky roots of covariance matrices that may be close to singular."""

import numpy as np
from scipy.linalg import lapack

from calamint.arrays import Array

# Tried in turn, relative to the mean diagonal, until a matrix can be factorised.
JITTERS = (0.0, *(10.0**power for power in range(-15, 1)))
SMALLEST_PIVOT = 1e-15

# Larger arrays are mapped anew by the allocator at every use, and leave the processor's cache.
CACHED_NUMBERS = 15_000


def factorise(matrix: Array) -> tuple[Array, float]:
    """The lower Cholesky root of a matrix, and the smallest jitter of the ladder that it needed.

    Only the upper triangle of the matrix is read.
    """
    size = len(matrix)
    if size == 0:
        return matrix, 0.0
    scale = float(matrix.trace()) / size
    for jitter in JITTERS:
        attempt = matrix
        if jitter:
            attempt = matrix.copy()
            attempt.flat[:: size + 1] += jitter * scale
        # The transpose is the same matrix, in the order that LAPACK wants, upper becoming lower.
        root, info = lapack.dpotrf(attempt.T, lower=1, clean=1)
        # A root whose pivots drown in rounding is no root: its inverse would be noise.
        if info == 0 and root.diagonal().min() ** 2 > SMALLEST_PIVOT * scale:
            return root, jitter * scale
    raise np.linalg.LinAlgError("a covariance matrix contains values that are not numbers")


def jitter_for(pivot: float, scale: float) -> float:
    """The smallest jitter of the ladder that keeps a pivot clear of rounding."""
    return next(
        jitter * scale for jitter in JITTERS if pivot + jitter * scale > SMALLEST_PIVOT * scale
    )
