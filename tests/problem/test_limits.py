"""Limits in the user's words."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calamint import Constraint, ProblemError
from calamint.problem.limits import read_constraint


@pytest.mark.parametrize(
    ("text", "name", "low", "high"),
    [
        ("latency_ms <= 2", "latency_ms", -math.inf, 2),
        ("accuracy >= 0.9", "accuracy", 0.9, math.inf),
        ("0.9 <= accuracy", "accuracy", 0.9, math.inf),
        ("2>=latency_ms", "latency_ms", -math.inf, 2),
        ("6.5 <= ph <= 7.5", "ph", 6.5, 7.5),
        ("7.5 >= ph >= 6.5", "ph", 6.5, 7.5),
        ("  risk<=1e-3 ", "risk", -math.inf, 1e-3),
        ("-1.5E+2 <= dB <= -3", "dB", -150, -3),
        ("risk ≤ .5", "risk", -math.inf, 0.5),
        ("1_000 ≥ mass", "mass", -math.inf, 1000),
        ("lambda <= +2.", "lambda", -math.inf, 2),
    ],
)
def test_limits_are_read(text, name, low, high):
    assert read_constraint(text) == Constraint(name, low, high)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Constraint("c", "1", 2), ["'1'", "not a number"]),
        (lambda: Constraint("c", None, 2), ["None", "not a number"]),
        (lambda: Constraint("c", math.nan, 2), ["nan", "not a number"]),
        (lambda: Constraint("c", 10**400), ["not a number"]),
        (lambda: Constraint("c"), ["no limit"]),
        (lambda: Constraint("c", 5, 6, binary=True), ["pass/fail and has limits"]),
        (lambda: Constraint("inf", 5), ["'inf'", "reads as a number"]),
    ],
)
def test_bad_constraints_get_one_sentence(make, words):
    with pytest.raises(ProblemError) as error:
        make()
    for word in words:
        assert word in str(error.value)


def test_limits_of_any_number_type_are_written_plainly():
    assert str(Constraint("a", np.float64(1))) == "a >= 1.0"
    assert str(Constraint("a", 1, 2**53 + 1)) == f"1.0 <= a <= {float(2**53 + 1)!r}"


def test_a_bare_name_is_pass_or_fail():
    constraint = read_constraint(" converges ")
    assert constraint.binary
    assert (constraint.low, constraint.high) == (0, math.inf)
    assert str(constraint) == "converges"
    assert constraint.met(True)
    assert not constraint.met(False)
    assert not constraint.met(math.nan)
    assert not constraint.met(-1.0)


finite = st.floats(allow_nan=False, allow_infinity=False)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("inf", "nan", "infinity")
)


@given(names, finite, finite, st.sampled_from(["low", "high", "both"]))
def test_what_is_written_is_read_back_exactly(name, a, b, ends):
    low, high = min(a, b), max(a, b)
    if ends == "low":
        high = math.inf
    elif ends == "high":
        low = -math.inf
    if low == high:
        return
    constraint = Constraint(name, low, high)
    assert read_constraint(str(constraint)) == constraint


@given(names, finite, st.integers(0, 5))
def test_a_limit_means_the_same_from_both_sides(name, limit, spaces):
    gap = " " * spaces
    assert read_constraint(f"{name}{gap}<={gap}{limit!r}") == read_constraint(
        f"{limit!r}{gap}>={gap}{name}"
    )


@given(finite, finite, finite)
def test_met_is_the_interval(low, high, value):
    if low < high:
        assert Constraint("c", low, high).met(value) == (low <= value and value <= high)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("latency == 2", ["equality", "interval"]),
        ("latency = 2", ["equality"]),
        ("latency != 2", ["'!='", "<= or >="]),
        ("latency < 2", ["'<'", "write <="]),
        ("latency => 2", ["'=>'", "write >="]),
        ("latency <= two", ["'two'", "not a finite number"]),
        ("latency <= inf", ["'inf'", "not a finite number"]),
        ("latency <= nan", ["'nan'"]),
        ("latency <=", ["''", "not a finite number"]),
        ("<= 2", ["''", "not the name"]),
        ("2 * latency <= 3", ["'2 * latency'", "not the name"]),
        ("1 <= 2", ["not the name"]),
        ("7.5 <= ph <= 6.5", ["'ph'", "leave nothing"]),
        ("2 <= ph <= 2", ["leave nothing"]),
        ("6 <= ph >= 7", ["two directions"]),
        ("1 <= a <= 2 <= 3", ["more than two limits"]),
        ("ph <= 3 <= 4", ["'3'", "not the name"]),
        ("a <= 2 and b <= 3", ["'and'", "two entries"]),
        ("is it ok", ["'is it ok'", "not the name"]),
        ("", ["not the name"]),
        (3, ["3", "write a limit"]),
    ],
)
def test_bad_limits_get_one_sentence(text, words):
    with pytest.raises(ProblemError) as error:
        read_constraint(text)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)
