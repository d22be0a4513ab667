"""What would be learnt: acquisition functions, all behind one small protocol."""

from calamint.acquire.auglag import AugmentedLagrangian
from calamint.acquire.candidates import candidate_points, first_apart, mixtures, space_filling
from calamint.acquire.eic import EIC
from calamint.acquire.eicd import EICD
from calamint.acquire.ev import EV
from calamint.acquire.ieci import IECI
from calamint.acquire.pesc import PESC, Information
from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.acquire.random import Random
from calamint.acquire.rejection import RS, RSDG
from calamint.acquire.thompson import Thompson

ACQUISITIONS: dict[str, type[Acquisition]] = {
    kind.name: kind
    for kind in (PESC, EIC, EICD, IECI, EV, AugmentedLagrangian, Thompson, RS, RSDG, Random)
}

__all__ = [
    "ACQUISITIONS",
    "EIC",
    "EICD",
    "EV",
    "IECI",
    "PESC",
    "RS",
    "RSDG",
    "Acquisition",
    "AugmentedLagrangian",
    "Incumbent",
    "Information",
    "Random",
    "Thompson",
    "Utility",
    "candidate_points",
    "first_apart",
    "mixtures",
    "space_filling",
]
