"""What would be learnt: acquisition functions, all behind one small protocol."""

from calamint.acquire.eic import EIC
from calamint.acquire.protocol import Acquisition, Incumbent, Utility
from calamint.acquire.random import Random

ACQUISITIONS: dict[str, type[Acquisition]] = {kind.name: kind for kind in (EIC, Random)}

__all__ = ["ACQUISITIONS", "EIC", "Acquisition", "Incumbent", "Random", "Utility"]
