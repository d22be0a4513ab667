"""What would be learnt: acquisition functions, all behind one small protocol."""

from calamint.acquire.eic import EIC
from calamint.acquire.pesc import PESC
from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.acquire.random import Random
from calamint.acquire.rejection import RS, RSDG

ACQUISITIONS: dict[str, type[Acquisition]] = {
    kind.name: kind for kind in (PESC, EIC, RS, RSDG, Random)
}

__all__ = [
    "ACQUISITIONS",
    "EIC",
    "PESC",
    "RS",
    "RSDG",
    "Acquisition",
    "Incumbent",
    "Random",
    "Utility",
]
