"""What would be learnt: acquisition functions, all behind one small protocol."""

from calamint.acquire.eic import EIC
from calamint.acquire.pesc import PESC
from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.acquire.random import Random

ACQUISITIONS: dict[str, type[Acquisition]] = {kind.name: kind for kind in (PESC, EIC, Random)}

__all__ = ["ACQUISITIONS", "EIC", "PESC", "Acquisition", "Incumbent", "Random", "Utility"]
