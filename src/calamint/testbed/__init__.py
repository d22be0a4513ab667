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
from calamint.testbed.gp_prior import gp_prior
from calamint.testbed.solved import SolvedProblem

CLASSIC = {
    make.__name__: make
    for make in (toy, gardner1, gardner2, branin, hartmann6, spring, speed_reducer)
}

__all__ = [
    "CLASSIC",
    "SolvedProblem",
    "branin",
    "gardner1",
    "gardner2",
    "gp_prior",
    "hartmann6",
    "speed_reducer",
    "spring",
    "toy",
]
