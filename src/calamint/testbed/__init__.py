"""Problems with known answers, to judge optimisers by."""

from calamint.testbed.classic import (
    branin,
    gardner1,
    gardner2,
    hartmann6,
    speed_reducer,
    spring,
    toy,
)
from calamint.testbed.engineering import (
    ackley10,
    goldstein_price,
    mystery,
    pressure_vessel,
    rosenbrock4,
    sasena2,
    welded_beam,
)
from calamint.testbed.gp_prior import gp_prior
from calamint.testbed.solved import SolvedProblem

CLASSIC = {
    make.__name__: make
    for make in (
        *(toy, gardner1, gardner2, branin, hartmann6, spring, speed_reducer),
        *(welded_beam, pressure_vessel, mystery, sasena2, ackley10),
        *(goldstein_price, rosenbrock4),
    )
}

__all__ = [
    "CLASSIC",
    "SolvedProblem",
    "ackley10",
    "branin",
    "gardner1",
    "gardner2",
    "goldstein_price",
    "gp_prior",
    "hartmann6",
    "mystery",
    "pressure_vessel",
    "rosenbrock4",
    "sasena2",
    "speed_reducer",
    "spring",
    "toy",
    "welded_beam",
]
