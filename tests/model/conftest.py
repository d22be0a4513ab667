"""Data to model, with and without noise."""

import numpy as np
import pytest

from calamint.model.data import Data
from calamint.model.kernels import KERNELS
from calamint.model.likelihood import GaussianLikelihood
from calamint.model.transforms import OutcomeTransform


def likelihood(kernel="matern52", count=12, dimension=2, noise=0.0, seed=0, known=None):
    rng = np.random.default_rng(seed)
    inputs = rng.random((count, dimension))
    values = np.sin(5 * inputs).sum(1) + noise * rng.standard_normal(count)
    variances = np.full(count, np.nan) if known is None else np.full(count, known)
    data = Data(inputs, values, variances)
    return GaussianLikelihood(
        KERNELS[kernel], data, OutcomeTransform(0.3, 1.2), np.arange(dimension)
    )


def thetas(dimension=2, count=3, seed=1, noise=-4.0):
    rng = np.random.default_rng(seed)
    theta = 0.3 * rng.standard_normal((count, dimension + 3))
    theta[:, :dimension] -= 1.0
    theta[:, -2] += noise
    return theta


@pytest.fixture(params=KERNELS)
def kernel_name(request):
    return request.param
