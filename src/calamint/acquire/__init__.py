"""What would be learnt: acquisition functions, all behind one small protocol."""

from typing import TYPE_CHECKING

from calamint.lazy import lazy_exports

if TYPE_CHECKING:
    from calamint.acquire.auglag import AugmentedLagrangian
    from calamint.acquire.candidates import candidate_points, first_apart, mixtures, space_filling
    from calamint.acquire.eic import EIC
    from calamint.acquire.eicd import EICD
    from calamint.acquire.ev import EV
    from calamint.acquire.ieci import IECI
    from calamint.acquire.pesc import PESC, Information
    from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
    from calamint.acquire.random import Random
    from calamint.acquire.registry import ACQUISITIONS
    from calamint.acquire.rejection import RS, RSDG
    from calamint.acquire.thompson import Thompson

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
    "AcquisitionFunction",
    "AugmentedLagrangian",
    "Incumbent",
    "Information",
    "Random",
    "Thompson",
    "candidate_points",
    "first_apart",
    "mixtures",
    "space_filling",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "auglag": ("AugmentedLagrangian",),
        "candidates": ("candidate_points", "first_apart", "mixtures", "space_filling"),
        "eic": ("EIC",),
        "eicd": ("EICD",),
        "ev": ("EV",),
        "ieci": ("IECI",),
        "pesc": ("PESC", "Information"),
        "protocol": ("Acquisition", "Incumbent", "AcquisitionFunction"),
        "random": ("Random",),
        "registry": ("ACQUISITIONS",),
        "rejection": ("RS", "RSDG"),
        "thompson": ("Thompson",),
    },
)
