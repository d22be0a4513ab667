"""How much the entropy of x* would fall, by Monte Carlo (Villemonteix et al. 2009).

    H[x*] − E_y H[x* | y at x]

All functions are drawn at many solutions of other draws, the only places where x* may then be. For
each of a few results y that a measurement at x may have, every draw is moved to what it would be
had y been found, and the places where they have their optima are counted again. It is slow, and
its counts are rough: for small problems, and few inputs at a time. A outcome counts as a noisy
measurement of the score behind it.

| symbol | code | shape | meaning |
|---|---|---|---|
| x* | `places` | (G, D) | where the optimum may be |
| y | `nodes`, `chances` | (Q,) | results of a measurement, with their probabilities |
| H | `_entropy` | | of the place of the optimum, in nats |
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from calamint.acquire.optima import draw_solutions
from calamint.acquire.protocol import Acquisition, AcquisitionFunction, Incumbent
from calamint.acquire.rejection import Counted, optima, root_of
from calamint.arrays import Array
from calamint.checks import check_integer
from calamint.model import Surrogate


@final
@dataclass(frozen=True)
class EntropyReduction(Counted):
    """places   (G, D) where x* may be
    normals  (S, F, G + 2) standard normal numbers: of each draw, by function, at the places, at x,
             and for the noise of a measurement there
    nodes    (Q,) results in standard deviations, with their probabilities `chances` (Q,)
    """

    surrogate: Surrogate
    places: Array
    normals: Array
    nodes: Array
    chances: Array

    def contributions(self, x: Array) -> Array:
        return np.array([self._at(point) for point in x]).reshape(
            len(x), len(self.surrogate.functions)
        )

    def _at(self, point: Array) -> Array:
        """(D,) -> (1 + K,) nats, averaged over hyper-parameter samples."""
        functions = [self.surrogate.objective, *self.surrogate.constraints]
        everywhere = np.vstack([self.places, point])
        gains = np.zeros((self.surrogate.samples, len(functions)))
        for sample in range(self.surrogate.samples):
            drawn: list[Array] = []
            centres: list[float] = []
            measurable: list[tuple[Array, float] | None] = []
            for i, function in enumerate(functions):
                posterior = function.posterior.take(slice(sample, sample + 1))
                mean = posterior.mean_variance(everywhere)[0][0]
                centres.append(float(mean[-1]))
                if posterior.measurable:
                    covariance = posterior.covariance(everywhere, everywhere)[0]
                    normals = self.normals[:, i, : len(everywhere)]
                    drawn.append(mean + normals @ root_of(covariance).T)
                    measurable.append((covariance[:, -1], float(posterior.noise[0])))
                else:
                    drawn.append(np.broadcast_to(mean, (len(self.normals), len(mean))))
                    measurable.append(None)
            places = [values[:, :-1] for values in drawn]
            before = self._entropy(places)
            for i, known in enumerate(measurable):
                if known is None:
                    continue
                cross, noise = known
                total = cross[-1] + noise + 1e-12
                found = drawn[i][:, -1] + np.sqrt(noise) * self.normals[:, i, -1]
                after = 0.0
                for node, chance in zip(self.nodes, self.chances, strict=True):
                    result = centres[i] + node * np.sqrt(total)
                    moved = places[i] + (result - found)[:, None] * cross[:-1] / total
                    after += chance * self._entropy([*places[:i], moved, *places[i + 1 :]])
                gains[sample, i] = before - after
        return np.maximum(gains.mean(0), 0.0)  # less is an error of counting

    def _entropy(self, drawn: list[Array]) -> float:
        """Of the place where draws (S, G) of all functions have their optimum, or come closest."""
        best, _ = optima(drawn, self.surrogate.constraints)
        share = np.unique(best, return_counts=True)[1] / len(best)
        return float(-(share * np.log(share)).sum())


@final
class MonteCarloEntropy(Acquisition):
    """The fall of x*'s entropy by Monte Carlo, for few inputs at a time.

    places, draws  how many; results  of a measurement, how many
    """

    name = "entropy"
    supports_decoupled = True

    def __init__(self, places: int = 50, draws: int = 1000, results: int = 7) -> None:
        self.places = check_integer(places, "places", 1)
        self.draws, self.results = (
            check_integer(draws, "draws", 1),
            check_integer(results, "results", 1),
        )

    def build(
        self, surrogate: Surrogate, incumbent: Incumbent, rng: np.random.Generator
    ) -> AcquisitionFunction:
        drawn = draw_solutions(surrogate, self.places, incumbent.point[None], rng)
        places = np.unique(drawn.points, axis=0)
        nodes, chances = np.polynomial.hermite_e.hermegauss(self.results)
        return EntropyReduction(
            surrogate,
            places,
            rng.standard_normal((self.draws, 1 + len(surrogate.constraints), len(places) + 2)),
            nodes,
            chances / chances.sum(),
        )
