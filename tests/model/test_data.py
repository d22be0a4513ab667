"""Data and the units that a model computes in."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calamint.model.data import Data
from calamint.model.transforms import standardise

values_strategy = st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=10).map(np.array)


def test_data_grows_without_changing_the_old():
    first = Data.empty(2).append(np.array([0.1, 0.2]), 3.0)
    second = first.append(np.array([0.3, 0.4]), 4.0, noise_variance=0.5)
    assert len(first) == 1
    assert second.inputs.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert second.values.tolist() == [3.0, 4.0]
    assert math.isnan(second.noise_variance[0])
    assert second.noise_variance[1] == 0.5


def repeated(*measured, noise_variance=math.nan):
    data = Data.empty(1)
    for x, value in measured:
        data = data.append(np.array([x]), value, noise_variance)
    return data


def test_repetitions_that_say_the_same_count_once():
    data = repeated((0.1, 1.0), (0.2, 2.0), (0.1, 1.0), (0.3, 1.0), (0.2, 2.0))
    once = data.without_exact_repetitions()
    assert once.inputs[:, 0].tolist() == [0.1, 0.2, 0.3]
    assert once.values.tolist() == [1.0, 2.0, 1.0]
    assert data.is_exact
    assert not once.is_exact  # nothing was repeated
    assert once.without_exact_repetitions() is once


def test_a_value_that_other_inputs_share_is_no_evidence_against_noise():
    shared = repeated((0.1, 1.0), (0.2, 2.0), (0.3, 1.0), (0.1, 1.0))
    assert not shared.is_exact
    assert shared.append(np.array([0.2]), 2.0).is_exact


def test_after_one_repetition_that_differs_all_of_them_count():
    data = repeated((0.1, 1.0), (0.1, 1.0), (0.1, 1.5), (0.1, 1.0), (0.1, 1.0))
    assert data.without_exact_repetitions().values.tolist() == [1.0, 1.5, 1.0, 1.0]
    assert not data.is_exact


def test_repetitions_with_standard_errors_all_count():
    data = repeated((0.1, 1.0), (0.1, 1.0), noise_variance=0.5)
    assert data.without_exact_repetitions() is data
    assert not data.is_exact


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2]), st.sampled_from([1.0, 2.0])), max_size=8))
def test_later_measurements_never_change_what_counted_before(measured):
    """A posterior is extended by the measurements that are new."""
    before = repeated(*measured[:-1]).without_exact_repetitions()
    after = repeated(*measured).without_exact_repetitions()
    assert after.values[: len(before)].tolist() == before.values.tolist()
    assert len(after) <= len(before) + 1


@given(values_strategy)
def test_objectives_get_mean_zero_and_spread_one(values):
    scaling = standardise(values)
    scaled = scaling.to_model(values)
    assert np.all(np.isfinite(scaled))
    assert scaling.scale > 0
    if np.std(values) > 1e-10 * np.max(np.abs(values)):
        assert abs(scaled.mean()) < 1e-6
        assert scaled.std() == pytest.approx(1, rel=1e-6)


@given(values_strategy, st.floats(-1e6, 1e6), st.booleans())
def test_limits_stay_where_they_are_relative_to_the_values(values, limit, upper):
    low, high = (-math.inf, limit) if upper else (limit, math.inf)
    scaling = standardise(values, low, high)
    scaled_low, scaled_high = scaling.limits(low, high)
    scaled = scaling.to_model(values)
    inside = (values >= low) & (values <= high)
    clear = np.abs(values - limit) > 1e-9 * (np.max(np.abs(values)) + abs(limit))
    assert np.array_equal(((scaled >= scaled_low) & (scaled <= scaled_high))[clear], inside[clear])


def test_without_values_the_limit_is_the_centre():
    assert standardise(np.empty(0), 3.0).limits(3.0, math.inf) == (0.0, math.inf)
    assert standardise(np.empty(0), 6.5, 7.5).limits(6.5, 7.5) == (-1.0, 1.0)
    assert standardise(np.empty(0)).scale == 1


def test_a_few_agreeing_values_do_not_hide_the_limit():
    scaling = standardise(np.array([1.0, 1.0001]), low=0.0)
    low, _ = scaling.limits(0.0, math.inf)
    assert -2 < low < -1  # not thousands of stds away


@pytest.mark.parametrize("value", [0.0, 5.0, -1e12, 1e-12, 1e300, 1e-300])
def test_equal_values_have_a_usable_scale(value):
    scaling = standardise(np.full(3, value))
    assert np.all(np.abs(scaling.to_model(np.full(3, value))) < 1e-3)
    assert 0 < scaling.scale < math.inf
