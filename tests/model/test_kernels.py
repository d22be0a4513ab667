"""Kernels: shapes, derivatives and spectra."""

import numpy as np
import pytest
from scipy.special import gamma, kv

from calamint.model.kernels import KERNELS, squared_differences


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


def test_values_agree_with_the_textbook(kernel):
    r = np.array([0.1, 0.5, 1.0, 3.0])
    if kernel.name == "se":
        expected = np.exp(-0.5 * r**2)
    else:
        nu = kernel.smoothness
        scaled = np.sqrt(2 * nu) * r
        expected = 2 ** (1 - nu) / gamma(nu) * scaled**nu * kv(nu, scaled)
    assert np.allclose(kernel.value(r**2), expected, rtol=1e-12)
    assert kernel.value(np.zeros(1)) == 1


def test_slope_is_the_derivative(kernel):
    squared = np.array([1e-3, 0.1, 1.0, 9.0])
    step = 1e-6
    difference = (kernel.value(squared + step) - kernel.value(squared - step)) / (2 * step)
    value, derivative = kernel.value_derivative(squared)
    assert np.allclose(derivative, -2 * difference, rtol=1e-5)
    assert np.allclose(value, kernel.value(squared), rtol=1e-14)


@pytest.mark.parametrize("power", [-300, -20, -9, 0, 9, 20, 300])
def test_any_distance_gives_finite_numbers(kernel, power):
    value, derivative = kernel.value_derivative(np.array([0.0, 10.0**power]))
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(derivative))
    assert np.all((value >= 0) & (value <= 1))


def test_frequencies_have_the_kernel_as_their_transform(kernel):
    """E cos(ω·(x − x')) = k(x − x') for several displacements in two dimensions."""
    count = 400_000
    frequencies = kernel.frequencies((count, 2), np.random.default_rng(0))
    for displacement in ([0.3, 0.0], [0.5, -0.5], [1.5, 1.0]):
        cosines = np.cos(frequencies @ np.array(displacement))
        expected = kernel.value(np.array([np.sum(np.square(displacement))]))[0]
        assert abs(cosines.mean() - expected) < 4 * cosines.std() / np.sqrt(count)


def test_squared_differences_are_per_parameter_and_exact_for_close_points():
    parameter_index = np.array([0, 1, 1])
    a = np.array([[0.1, 0.0, 1.0]])
    b = np.array([[0.4, 1.0, 0.0], [0.1 + 1e-12, 0.0, 1.0]])
    squares = squared_differences(a, b, parameter_index)
    assert np.allclose(squares[:, 0, 0], [0.09, 2.0])
    assert squares[0, 0, 1] == pytest.approx(1e-24, rel=1e-3)
