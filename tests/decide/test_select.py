"""The maximiser finds maxima, stays in the box, and ends on values that parameters can take."""

import numpy as np

from calamint.acquire import AcquisitionFunction, space_filling
from calamint.decide.ascend import ascend, discrete_neighbours
from calamint.decide.select import Competitor, maximise
from calamint.model import FixedCost
from calamint.problem import Choice, Integer, Real, Space


class Bowl(AcquisitionFunction):
    """A smooth peak, seen by integers and choices at their decoded values only."""

    def __init__(self, space, peak):
        self.space, self.peak = space, peak

    def value(self, x):
        return self.value_gradient(x)[0]

    def value_gradient(self, x):
        apart = self.space.snap(x) - self.peak
        gradient = np.where(self.space.continuous, -200 * apart, 0.0)
        return -100 * (apart**2).sum(-1), gradient


def best_of(acq_function, space):
    """The best input of the only task."""
    everything = [Competitor("all", np.ones(1), FixedCost(1.0))]
    near = np.empty((0, space.dimension))
    (found,) = maximise(acq_function, everything, space, near, np.random.default_rng(0))
    return found.point, found.score


def test_a_peak_inside_and_one_outside_the_box_are_found():
    space = Space({"x": Real(0, 1), "y": Real(0, 1)})
    for peak, expected in (([0.3, 0.7], [0.3, 0.7]), ([1.5, -0.5], [1.0, 0.0])):
        point, height = best_of(Bowl(space, np.array(peak)), space)
        assert np.allclose(point, expected, atol=1e-6)
        assert height == Bowl(space, np.array(peak)).value(point[None])[0]


def test_integers_and_choices_end_on_exact_values():
    space = Space({"x": Real(0, 1), "n": Integer(1, 1000), "k": Choice("a", "b", "c")})
    target = space.encode({"x": 0.123456, "n": 733, "k": "b"})
    point, _ = best_of(Bowl(space, target), space)
    assert np.array_equal(space.snap(point), point)
    assert space.decode(point)["n"] == 733
    assert space.decode(point)["k"] == "b"
    assert abs(point[0] - 0.123456) < 1e-6


def test_a_space_with_nothing_smooth():
    space = Space({"n": Integer(1, 5), "k": Choice("a", "b")})
    target = space.encode({"n": 4, "k": "b"})
    point, _ = best_of(Bowl(space, target), space)
    assert space.decode(point) == {"n": 4, "k": "b"}


def test_one_bad_start_does_not_spoil_the_others():
    space = Space({"x": Real(0, 1)})

    def broken(_, x):
        value, gradient = -((x[:, 0] - 0.5) ** 2), -2 * (x - 0.5)
        bad = x[:, 0] > 0.8
        return np.where(bad, -np.inf, value), np.where(bad[:, None], np.nan, gradient)

    points, heights = ascend(broken, np.array([[0.9], [0.2]]), space, 50)
    assert abs(points[1, 0] - 0.5) < 1e-3
    assert heights[1] > -1e-6


def test_neighbours_differ_in_one_parameter():
    space = Space({"x": Real(0, 1), "n": Integer(1, 3), "k": Choice("a", "b", "c")})
    point = space.encode({"x": 0.5, "n": 1, "k": "b"})
    found = [space.decode(neighbour) for neighbour in discrete_neighbours(space, point)]
    assert {"x": 0.5, "n": 2, "k": "b"} in found
    assert {"x": 0.5, "n": 1, "k": "a"} in found
    assert all(entry["x"] == 0.5 for entry in found)
    assert len(found) == 4  # n = 2, and three options of k


def test_space_filling_points_are_spread_and_snapped():
    space = Space({"x": Real(0, 1), "n": Integer(1, 4)})
    points = space_filling(space, 64, np.random.default_rng(0))
    assert np.array_equal(space.snap(points), points)
    # Every quarter of x holds a quarter of the points, up to the discrepancy of Halton points.
    counts = np.histogram(points[:, 0], bins=4, range=(0, 1))[0]
    assert np.all(np.abs(counts - 16) <= 2)
