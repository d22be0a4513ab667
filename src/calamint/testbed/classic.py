"""Problems from the literature with known answers, each with a sensible split into tasks."""

import math

import numpy as np

from calamint.arrays import Array
from calamint.problem import Problem, Real, Task
from calamint.testbed.solved import Function, SolvedProblem


def toy() -> SolvedProblem:
    """Gramacy et al.'s problem, Hernández-Lobato et al. 2016, 6.3: a linear objective, c1 active.

    Every function has a task of its own on one resource. Local optima at (0, 0.75) and near
    (0.72, 0.14) have the values 0.75 and 0.861.
    """

    def c1(x: Array) -> Array:
        a, b = x[..., 0], x[..., 1]
        return 0.5 * np.sin(2 * np.pi * (a**2 - 2 * b)) + a + 2 * b - 1.5

    def c2(x: Array) -> Array:
        return 1.5 - x[..., 0] ** 2 - x[..., 1] ** 2

    return SolvedProblem(
        "toy",
        Problem(
            space={"x1": Real(0, 1), "x2": Real(0, 1)},
            minimize="f",
            constraints=["c1 >= 0", "c2 >= 0"],
            tasks={name: Task(name) for name in ("f", "c1", "c2")},
        ),
        {"f": lambda x: x[..., 0] + x[..., 1], "c1": c1, "c2": c2},
        solution={"x1": 0.19512268856, "x2": 0.40466536346},
        optimum=0.5997880520,
        worst=2.0,
    )


def gardner1() -> SolvedProblem:
    """The first simulation of Gardner et al., with its constraint shifted by one half."""

    def f(x: Array) -> Array:
        a, b = x[..., 0], x[..., 1]
        return np.cos(2 * a) * np.cos(b) + np.sin(a)

    def c(x: Array) -> Array:
        return -(np.cos(x[..., 0] + x[..., 1]) + 0.5)

    return SolvedProblem(
        "gardner1",
        _two_tasks({"x1": Real(0, 6), "x2": Real(0, 6)}),
        {"f": f, "c": c},
        solution={"x1": 4.62264091437, "x2": 5.84933459759},
        optimum=-1.8887513614,
        worst=2.0,
    )


def gardner2() -> SolvedProblem:
    """The second simulation of Gardner et al.: the feasible set is 1.76 % of the box."""

    def f(x: Array) -> Array:
        return np.sin(x[..., 0]) + x[..., 1]

    def c(x: Array) -> Array:
        return -(np.sin(x[..., 0]) * np.sin(x[..., 1]) + 0.95)

    return SolvedProblem(
        "gardner2",
        _two_tasks({"x1": Real(0, 6), "x2": Real(0, 6)}),
        {"f": f, "c": c},
        solution={"x1": 4.71238893585, "x2": 1.25323589751},
        optimum=0.2532358975,
        worst=7.0,
    )


def branin() -> SolvedProblem:
    """Branin's function inside a disk; the solution is in its interior."""

    def f(x: Array) -> Array:
        a, b = x[..., 0], x[..., 1]
        bend = b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6
        return bend**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10

    def disk(x: Array) -> Array:
        return (x[..., 0] - 2.5) ** 2 + (x[..., 1] - 7.5) ** 2

    return SolvedProblem(
        "branin",
        Problem(
            space={"x1": Real(-5, 10), "x2": Real(0, 15)},
            minimize="f",
            constraints=["disk <= 50"],
            tasks={"f": Task("f"), "disk": Task("disk")},
        ),
        {"f": f, "disk": disk},
        solution={"x1": math.pi, "x2": 2.275},
        optimum=0.3978873577,
        worst=308.129096,
    )


_HARTMANN_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_HARTMANN_C = np.array([1.0, 1.2, 3.0, 3.2])


def hartmann6() -> SolvedProblem:
    """Hartmann's six-dimensional function in the unit ball; the solution is in its interior."""

    def f(x: Array) -> Array:
        wells = (_HARTMANN_A * (x[..., None, :] - _HARTMANN_P) ** 2).sum(-1)
        return -(_HARTMANN_C * np.exp(-wells)).sum(-1)

    def norm(x: Array) -> Array:
        return np.sqrt((x**2).sum(-1))

    best = (0.20168951, 0.15001069, 0.47687397, 0.27533243, 0.31165162, 0.65730053)
    return SolvedProblem(
        "hartmann6",
        Problem(
            space={f"x{i + 1}": Real(0, 1) for i in range(6)},
            minimize="f",
            constraints=["norm <= 1"],
            tasks={"f": Task("f"), "norm": Task("norm")},
        ),
        {"f": f, "norm": norm},
        solution={f"x{i + 1}": best[i] for i in range(6)},
        optimum=-3.3223680114,
        worst=0.0,
    )


def spring() -> SolvedProblem:
    """The lightest coil spring that holds (classic box): c1 and c2 are active.

    The weight comes from a drawing, the four requirements from one simulation.
    """

    def weight(x: Array) -> Array:
        wire, coil, turns = x[..., 0], x[..., 1], x[..., 2]
        return wire**2 * coil * (turns + 2)

    def deflection(x: Array) -> Array:
        wire, coil, turns = x[..., 0], x[..., 1], x[..., 2]
        return coil**3 * turns / (71785 * wire**4) - 1

    def stress(x: Array) -> Array:
        wire, coil = x[..., 0], x[..., 1]
        space = coil - wire
        # A coil as thick as its wire cannot be wound: keep the pole finite.
        space = np.where(np.abs(space) < 1e-9, 1e-9, space)
        shear = (4 * coil**2 - wire * coil) / (12566 * wire**3 * space)
        return 1 - shear - 1 / (5108 * wire**2)

    def frequency(x: Array) -> Array:
        wire, coil, turns = x[..., 0], x[..., 1], x[..., 2]
        return 140.45 * wire / (turns * coil**2) - 1

    def diameter(x: Array) -> Array:
        return 1 - (x[..., 0] + x[..., 1]) / 1.5

    requirements = {
        "deflection": deflection,
        "stress": stress,
        "frequency": frequency,
        "diameter": diameter,
    }
    return SolvedProblem(
        "spring",
        Problem(
            space={"wire": Real(0.05, 2), "coil": Real(0.25, 1.3), "turns": Real(2, 15)},
            minimize="weight",
            constraints=[f"{name} >= 0" for name in requirements],
            tasks={"draw": Task("weight"), "simulate": Task(list(requirements))},
        ),
        {"weight": weight, **requirements},
        solution={"wire": 0.051689052182, "coil": 0.35671752567, "turns": 11.28897830571},
        optimum=0.0126652328,
        worst=88.4,
    )


def speed_reducer() -> SolvedProblem:
    """Golinski's gearbox: seven dimensions, eleven constraints, c5, c6 and c8 active.

    Weight, gears (c1, c2, c7–c9) and shafts (the rest) are separate calculations.
    """

    def split(x: Array) -> tuple[Array, ...]:
        return tuple(x[..., i] for i in range(7))

    def weight(x: Array) -> Array:
        a, b, c, d, e, f, g = split(x)
        value: Array = (
            0.7854 * a * b**2 * (3.3333 * c**2 + 14.9334 * c - 43.0934)
            - 1.508 * a * (f**2 + g**2)
            + 7.4777 * (f**3 + g**3)
            + 0.7854 * (d * f**2 + e * g**2)
        )
        return value

    def demands(x: Array) -> list[Array]:
        a, b, c, d, e, f, g = split(x)
        return [
            27 / (a * b**2 * c),
            397.5 / (a * b**2 * c**2),
            1.93 * d**3 / (b * c * f**4),
            1.93 * e**3 / (b * c * g**4),
            np.sqrt((745 * d / (b * c)) ** 2 + 16.9e6) / (110 * f**3),
            np.sqrt((745 * e / (b * c)) ** 2 + 157.5e6) / (85 * g**3),
            b * c / 40,
            5 * b / a,
            a / (12 * b),
            (1.5 * f + 1.9) / d,
            (1.1 * g + 1.9) / e,
        ]

    def demand(index: int) -> Function:
        return lambda x: demands(x)[index]

    names = [f"c{i + 1}" for i in range(11)]
    box = [(2.6, 3.6), (0.7, 0.8), (17, 28), (7.3, 8.3), (7.8, 8.3), (2.9, 3.9), (5, 5.5)]
    best = (3.5, 0.7, 17.0, 7.3, 7.8, 3.35021466611, 5.28668322977)
    gears = ["c1", "c2", "c7", "c8", "c9"]
    return SolvedProblem(
        "speed_reducer",
        Problem(
            space={f"x{i + 1}": Real(low, high) for i, (low, high) in enumerate(box)},
            minimize="weight",
            constraints=[f"{name} <= 1" for name in names],
            tasks={
                "weigh": Task("weight"),
                "gears": Task(gears),
                "shafts": Task([name for name in names if name not in gears]),
            },
        ),
        {"weight": weight, **{name: demand(i) for i, name in enumerate(names)}},
        solution={f"x{i + 1}": best[i] for i in range(7)},
        optimum=2996.34816497,
        worst=7144.82593,
    )


def _two_tasks(space: dict[str, Real]) -> Problem:
    return Problem(
        space=space,
        minimize="f",
        constraints=["c >= 0"],
        tasks={"f": Task("f"), "c": Task("c")},
    )
