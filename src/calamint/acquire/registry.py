"""All acquisitions by name."""

from calamint.acquire.auglag import AugmentedLagrangian
from calamint.acquire.eic import EIC
from calamint.acquire.eicd import EICD
from calamint.acquire.ev import EV
from calamint.acquire.ieci import IECI
from calamint.acquire.pesc import PESC
from calamint.acquire.protocol import Acquisition
from calamint.acquire.random import Random
from calamint.acquire.rejection import RS, RSDG
from calamint.acquire.thompson import Thompson

ACQUISITIONS: dict[str, type[Acquisition]] = {
    kind.name: kind
    for kind in (PESC, EIC, EICD, IECI, EV, AugmentedLagrangian, Thompson, RS, RSDG, Random)
}
