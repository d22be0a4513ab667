"""Design problems from engineering, and functions that span decades, with known answers."""

import math

import numpy as np

from calamint.arrays import Array
from calamint.problem import Problem, Real, Task
from calamint.testbed.solved import SolvedProblem


def welded_beam() -> SolvedProblem:
    """Coello's welded beam: four of six constraints are active, 0.1 % of the box is feasible.

    The price comes from a catalogue, the six requirements from one simulation.
    """
    load, length, young, shear_modulus = 6000.0, 14.0, 30e6, 12e6

    def price(x: Array) -> Array:
        a, b, c, d = (x[..., i] for i in range(4))
        value: Array = 1.10471 * a**2 * b + 0.04811 * c * d * (14 + b)
        return value

    def shear(x: Array) -> Array:
        a, b, c = (x[..., i] for i in range(3))
        primary = load / (math.sqrt(2) * a * b)
        radius = np.sqrt(b**2 / 4 + (a + c) ** 2 / 4)
        polar = 2 * math.sqrt(2) * a * b * (b**2 / 12 + (a + c) ** 2 / 4)
        secondary = load * (length + b / 2) * radius / polar
        return np.sqrt(primary**2 + primary * secondary * b / radius + secondary**2)

    def bending(x: Array) -> Array:
        return 6 * load * length / (x[..., 3] * x[..., 2] ** 2)

    def side(x: Array) -> Array:
        return x[..., 0] - x[..., 3]

    def outlay(x: Array) -> Array:
        a, b, c, d = (x[..., i] for i in range(4))
        value: Array = 0.10471 * a**2 + 0.04811 * c * d * (14 + b)
        return value

    def deflection(x: Array) -> Array:
        return 4 * load * length**3 / (young * x[..., 3] * x[..., 2] ** 3)

    def buckling(x: Array) -> Array:
        c, d = x[..., 2], x[..., 3]
        slender = 1 - c / (2 * length) * math.sqrt(young / (4 * shear_modulus))
        return 4.013 * young * np.sqrt(c**2 * d**6 / 36) / length**2 * slender

    limits = [
        "shear <= 13600",
        "bending <= 30000",
        "side <= 0",
        "outlay <= 5",
        "deflection <= 0.25",
        "buckling >= 6000",
    ]
    requirements = {
        "shear": shear,
        "bending": bending,
        "side": side,
        "outlay": outlay,
        "deflection": deflection,
        "buckling": buckling,
    }
    box = {"a": (0.125, 10.0), "b": (0.1, 10.0), "c": (0.1, 10.0), "d": (0.1, 10.0)}
    return SolvedProblem(
        "welded_beam",
        Problem(
            space={name: Real(*ends) for name, ends in box.items()},
            minimize="price",
            constraints=limits,
            tasks={"quote": Task("price"), "simulate": Task(list(requirements))},
        ),
        {"price": price, **requirements},
        solution={
            "a": 0.205729639784183,
            "b": 3.470488665674915,
            "c": 9.0366239103644,
            "d": 0.205729639786183,
        },
        optimum=1.7248523086,
        worst=1220.174,
    )


def pressure_vessel() -> SolvedProblem:
    """The cheapest pressure vessel with continuous thicknesses; three constraints are active."""

    def price(x: Array) -> Array:
        a, b, c, d = (x[..., i] for i in range(4))
        value: Array = 0.6224 * a * c * d + 1.7781 * b * c**2 + 3.1661 * a**2 * d + 19.84 * a**2 * c
        return value

    requirements = {
        "shell": lambda x: x[..., 0] - 0.0193 * x[..., 2],
        "head": lambda x: x[..., 1] - 0.00954 * x[..., 2],
        "volume": lambda x: np.pi * x[..., 2] ** 2 * (x[..., 3] + 4 / 3 * x[..., 2]),
        "length": lambda x: x[..., 3],
    }
    box = {"a": (0.0, 10.0), "b": (0.0, 10.0), "c": (10.0, 50.0), "d": (150.0, 200.0)}
    return SolvedProblem(
        "pressure_vessel",
        Problem(
            space={name: Real(*ends) for name, ends in box.items()},
            minimize="price",
            constraints=["shell >= 0", "head >= 0", "volume >= 1296000", "length <= 240"],
            tasks={"quote": Task("price"), "simulate": Task(list(requirements))},
        ),
        {"price": price, **requirements},
        solution={
            "a": 0.778168641377809,
            "b": 0.38464916263025,
            "c": 40.319618724135175,
            "d": 200.0,
        },
        optimum=5885.332773617,
        worst=269214.5,
    )


def mystery() -> SolvedProblem:
    """Sasena's mystery function; its constraint is active."""

    def f(x: Array) -> Array:
        a, b = x[..., 0], x[..., 1]
        value: Array = (
            2
            + 0.01 * (b - a**2) ** 2
            + (1 - a) ** 2
            + 2 * (2 - b) ** 2
            + 7 * np.sin(0.5 * a) * np.sin(0.7 * a * b)
        )
        return value

    def c(x: Array) -> Array:
        return np.sin(x[..., 0] - x[..., 1] - np.pi / 8)

    return SolvedProblem(
        "mystery",
        _problem({"x1": Real(0, 5), "x2": Real(0, 5)}, ["c >= 0"]),
        {"f": f, "c": c},
        solution={"x1": 2.74495102578, "x2": 2.352251944073},
        optimum=-1.1742743289,
        worst=37.1044018734,
    )


def sasena2() -> SolvedProblem:
    """Sasena's "Test Function 2": three constraints, of which the second is active."""

    def f(x: Array) -> Array:
        return (x[..., 0] - 1) ** 2 + (x[..., 1] - 0.5) ** 2

    def c1(x: Array) -> Array:
        a, b = x[..., 0], x[..., 1]
        return 12 - ((a - 3) ** 2 + (b + 2) ** 2) * np.exp(-(b**7))

    requirements = {
        "c1": c1,
        "c2": lambda x: 7 - 10 * x[..., 0] - x[..., 1],
        "c3": lambda x: 0.2 - (x[..., 0] - 0.5) ** 2 - (x[..., 1] - 0.5) ** 2,
    }
    return SolvedProblem(
        "sasena2",
        _problem({"x1": Real(0, 1), "x2": Real(0, 1)}, [f"{name} >= 0" for name in requirements]),
        {"f": f, **requirements},
        solution={"x1": 0.653465346534, "x2": 0.465346534653},
        optimum=0.1212871287,
        worst=1.25,
    )


def ackley10() -> SolvedProblem:
    """Ackley's function in ten dimensions; 2e-5 of the box is feasible, c1 is active at zero."""

    def f(x: Array) -> Array:
        radius = np.sqrt((x**2).mean(-1))
        waves = np.cos(2 * np.pi * x).mean(-1)
        value: Array = 20 + math.e - 20 * np.exp(-0.2 * radius) - np.exp(waves)
        return value

    requirements = {
        "c1": lambda x: x.sum(-1),
        "c2": lambda x: np.sqrt((x**2).sum(-1)),
    }
    return SolvedProblem(
        "ackley10",
        _problem({f"x{i + 1}": Real(-5, 10) for i in range(10)}, ["c1 <= 0", "c2 <= 5"]),
        {"f": f, **requirements},
        solution={f"x{i + 1}": 0.0 for i in range(10)},
        optimum=0.0,
        worst=19.3642801261,
    )


def goldstein_price() -> SolvedProblem:
    """Goldstein and Price's function, which spans six decades, on one side of a line."""

    def f(x: Array) -> Array:
        a, b = x[..., 0], x[..., 1]
        one = 19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2
        two = 18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2
        value: Array = (1 + (a + b + 1) ** 2 * one) * (30 + (2 * a - 3 * b) ** 2 * two)
        return value

    return SolvedProblem(
        "goldstein_price",
        _problem({"x1": Real(-2, 2), "x2": Real(-2, 2)}, ["total >= -0.6"]),
        {"f": f, "total": lambda x: x[..., 0] + x[..., 1]},
        solution={"x1": 0.24, "x2": -0.84 + 1e-12},
        optimum=16.6704,
        worst=1015690.2717980596,
    )


def rosenbrock4() -> SolvedProblem:
    """Rosenbrock's function in four dimensions, which spans six decades, inside a ball."""

    def f(x: Array) -> Array:
        value: Array = (100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2).sum(-1)
        return value

    best = (0.9593271412160, 0.9204625163774, 0.8472687876090, 0.7173393852373)
    return SolvedProblem(
        "rosenbrock4",
        _problem({f"x{i + 1}": Real(-2, 2) for i in range(4)}, ["ball <= 3"]),
        {"f": f, "ball": lambda x: (x**2).sum(-1)},
        solution={f"x{i + 1}": best[i] for i in range(4)},
        optimum=0.0313372808,
        worst=10827.0,
    )


def _problem(space: dict[str, Real], constraints: list[str]) -> Problem:
    """The objective and all constraints are two tasks."""
    names = [text.split()[0] for text in constraints]
    return Problem(
        space=space,
        minimize="f",
        constraints=constraints,
        tasks={"objective": Task("f"), "constraints": Task(names)},
    )
