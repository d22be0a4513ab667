"""Encoding: round trips, equal shares, refusals by name."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calamint import Choice, Integer, ProblemError, Real
from calamint.problem import Space

finite = st.floats(-1e12, 1e12)
positive = st.floats(1e-12, 1e12)


@st.composite
def reals(draw):
    log = draw(st.booleans())
    low, high = sorted(draw(st.lists(positive if log else finite, min_size=2, max_size=2)))
    if not low < high:
        high = low + max(abs(low), 1e-6)
    return Real(low, high, log=log)


@st.composite
def integers(draw):
    log = draw(st.booleans())
    low = draw(st.integers(1, 10**6) if log else st.integers(-(10**15), 10**15))
    return Integer(low, low + draw(st.integers(1, 10**9)), log=log)


def choices():
    option = st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.floats(-1e3, 1e3))
    return st.lists(option, min_size=2, max_size=6, unique_by=lambda o: (str(type(o)), o)).map(
        _choice
    )


def _choice(options):
    try:
        return Choice(*options)
    except ProblemError:  # 1 and 1.0 are one option
        return Choice("a", "b")


@given(st.data(), reals())
def test_real_round_trip_to_the_last_bits(data, real):
    value = data.draw(st.floats(real.low, real.high))
    back = real.decode(real.encode(value))
    assert real.low <= back <= real.high
    if real.log:
        assert math.isclose(back, value, rel_tol=1e-13)
    else:
        assert abs(back - value) <= 4 * math.ulp(max(abs(real.low), abs(real.high)))


@given(reals())
def test_real_bounds_round_trip_exactly(real):
    assert real.encode(real.low) == [0.0]
    assert real.encode(real.high) == [1.0]
    assert real.decode([0.0]) == real.low
    assert real.decode([1.0]) == real.high


@given(st.data(), integers())
def test_integer_round_trip_exactly(data, integer):
    value = data.draw(st.integers(integer.low, integer.high))
    assert integer.decode(integer.encode(value)) == value


@given(st.data(), choices())
def test_choice_round_trip_exactly(data, choice):
    value = data.draw(st.sampled_from(choice.options))
    back = choice.decode(choice.encode(value))
    assert back == value
    assert type(back) is type(value)


@given(st.integers(-100, 100), st.integers(1, 40))
def test_integers_own_equal_shares(low, count):
    integer = Integer(low, low + count)
    axis = (np.arange(50 * (count + 1)) + 0.5) / (50 * (count + 1))
    values = [integer.decode([u]) for u in axis]
    assert np.unique(values, return_counts=True)[1].tolist() == [50] * (count + 1)


def test_log_integers_own_the_logarithm_of_half_open_intervals():
    integer = Integer(1, 100, log=True)
    axis = (np.arange(200_000) + 0.5) / 200_000
    values = np.array([integer.decode([u]) for u in axis])
    total = math.log(100.5) - math.log(0.5)
    for value in (1, 2, 10, 100):
        share = (math.log(value + 0.5) - math.log(value - 0.5)) / total
        assert abs(np.mean(values == value) - share) < 2e-5


def test_choices_own_equal_shares():
    choice = Choice("a", "b", "c")
    count = 60_000
    points = np.random.default_rng(0).random((count, 3))
    shares = choice.snap(points).mean(0)
    std = math.sqrt(1 / 3 * 2 / 3 / count)
    assert np.all(np.abs(shares - 1 / 3) < 4 * std)


@st.composite
def spaces(draw):
    parameters = draw(st.lists(st.one_of(reals(), integers(), choices()), min_size=1, max_size=5))
    return Space({f"p{i}": parameter for i, parameter in enumerate(parameters)})


@given(spaces(), st.integers(0, 2**32 - 1))
def test_snap_moves_to_what_the_point_decodes_to(space, seed):
    points = np.random.default_rng(seed).random((5, space.dimension))
    snapped = space.snap(points)
    assert np.array_equal(space.snap(snapped), snapped)
    for point, moved in zip(points, snapped, strict=True):
        discrete = ~space.continuous
        params = space.decode(point)
        assert space.decode(moved) == params
        assert np.allclose(space.encode(params)[discrete], moved[discrete], rtol=0, atol=1e-12)
        assert np.array_equal(point[~discrete], moved[~discrete])


def test_columns_and_their_parameters():
    space = Space({"a": Real(0, 1), "b": Choice("x", "y", "z"), "c": Integer(1, 3)})
    assert space.dimension == 5
    assert space.parameter_index.tolist() == [0, 1, 1, 1, 2]
    assert space.continuous.tolist() == [True, False, False, False, False]
    encoded = space.encode({"a": 0.25, "b": "y", "c": 2})
    assert encoded.tolist() == [0.25, 0, 1, 0, 0.5]
    assert space.encode_all([]).shape == (0, 5)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"a": 2.0, "b": "x", "c": 1}, ["a is 2.0", "from 0.0 to 1.0"]),
        ({"a": "0.5", "b": "x", "c": 1}, ["a is '0.5'", "number"]),
        ({"a": True, "b": "x", "c": 1}, ["a is True", "number"]),
        ({"a": math.nan, "b": "x", "c": 1}, ["a is nan"]),
        ({"a": 10**400, "b": "x", "c": 1}, ["a is 1000", "number"]),
        ({"a": 0.5, "b": "x", "c": math.inf}, ["c is inf"]),
        ({"a": 0.5, "b": "w", "c": 1}, ["b is 'w'", "'x', 'y'"]),
        ({"a": 0.5, "b": "x", "c": 1.5}, ["c is 1.5", "whole number from 1 to 3"]),
        ({"a": 0.5, "b": "x", "c": 4}, ["c is 4"]),
        ({"a": 0.5, "b": "x"}, ["no 'c'"]),
        ({"a": 0.5, "b": "x", "c": 1, "cc": 2}, ["'cc'", "did you mean 'c'?"]),
        ([0.5, "x", 1], ["params is [0.5, 'x', 1]", "dict"]),
    ],
)
def test_values_outside_are_refused_by_name(params, words):
    space = Space({"a": Real(0, 1), "b": Choice("x", "y"), "c": Integer(1, 3)})
    with pytest.raises(ProblemError) as error:
        space.encode(params)
    for word in words:
        assert word in str(error.value)


def test_values_from_numpy_are_accepted():
    space = Space({"a": Real(0, 1), "b": Choice(1, 2), "c": Integer(1, 3)})
    params = space.validate({"a": np.float32(0.5), "b": np.int64(2), "c": np.float64(3.0)})
    assert params == {"a": 0.5, "b": 2, "c": 3}
    assert [type(value) for value in params.values()] == [float, int, int]


@pytest.mark.parametrize("point", [[0.5], [0.5, 1.5], [0.5, math.nan]])
def test_points_outside_the_cube_are_refused(point):
    with pytest.raises(ProblemError):
        Space({"a": Real(0, 1), "b": Real(0, 1)}).decode(np.array(point))


def test_true_is_not_one():
    choice = Choice(True, 1)
    assert choice.encode(choice.validate(1, "x")) == [0.0, 1.0]
    assert choice.encode(choice.validate(True, "x")) == [1.0, 0.0]
    assert Choice(0, 1) != Choice(False, True)
    assert Choice(np.int64(0), np.int64(1)) == Choice(0, 1)
    with pytest.raises(ProblemError, match="write one of True, 1"):
        choice.validate(np.array([1, 2]), "x")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Real(1, 0), ["(1, 0)", "empty"]),
        (lambda: Real(1, 1), ["empty"]),
        (lambda: Real("0", 1), ["'0'", "not a finite number"]),
        (lambda: Real(0, math.inf), ["inf", "not a finite number"]),
        (lambda: Real(-1e308, 1e308), ["too far apart"]),
        (lambda: Real(0, 10**400), ["not a finite number"]),
        (lambda: Real(2**60, 2**60 + 1), ["empty"]),
        (lambda: Real(1e10, 1e10 + 4e-6, log=True), ["too close together"]),
        (lambda: Integer(0, 10**400), ["not a finite number"]),
        (lambda: Real(0, 1, log=True), ["log scale", "positive bound"]),
        (lambda: Real(0, 1, log=2), ["log is 2"]),
        (lambda: Integer(0, 10, log=True), ["log scale", "positive bound"]),
        (lambda: Integer(0.5, 10), ["0.5", "whole"]),
        (lambda: Integer(3, 3), ["empty"]),
        (lambda: Integer(0, 2**60), ["too wide", "Real"]),
        (lambda: Choice("a"), ["('a',)", "at least two"]),
        (lambda: Choice("a", "a"), ["'a' twice"]),
        (lambda: Choice(1, 1.0), ["twice"]),
        (lambda: Choice("a", None), ["None"]),
        (lambda: Choice("a", math.nan), ["nan"]),
    ],
)
def test_bad_parameters_get_one_sentence(make, words):
    with pytest.raises(ProblemError) as error:
        make()
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)
