"""How long jobs of one task take: a Gaussian process on the logarithm of their durations."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from calamint.model.data import Data, Scaling
from calamint.model.fit import most_probable
from calamint.model.hyper import Prior
from calamint.model.kernels import KERNELS
from calamint.model.likelihood import Evidence
from calamint.model.posterior import Posterior
from calamint.problem import Space
from calamint.problem.parameters import Array


@final
@dataclass(frozen=True)
class DurationModel:
    """Log seconds at any input, by the most probable hyper-parameters.

    Before any job of the task has finished, every job is expected to take one second.
    """

    posterior: Posterior
    scaling: Scaling

    @staticmethod
    def of(data: Data, space: Space, rng: np.random.Generator) -> "DurationModel":
        """data  log seconds of finished jobs"""
        offset = float(np.mean(data.values)) if len(data) else 0.0
        # A factor of two is a usual spread; the amplitude is learnt from there.
        scaling = Scaling(offset, float(np.log(2)))
        evidence = Evidence(KERNELS["matern52"], data, scaling, space.owner)
        theta = most_probable(evidence, Prior.standard(len(space)), rng)
        return DurationModel(Posterior.of(evidence, theta[None]), scaling)

    def extended(self, data: Data) -> "DurationModel":
        """The same with what finished since, under the same hyper-parameters."""
        posterior = self.posterior
        for index in range(len(posterior.inputs), len(data)):
            value = self.scaling.inward(data.values[index : index + 1])
            posterior = posterior.append(data.inputs[index], value, posterior.noise)
        return replace(self, posterior=posterior)

    def log_seconds(self, x: Array) -> Array:
        """(n, D) -> (n,)"""
        return self.scaling.offset + self.scaling.scale * self.posterior.moments(x)[0][0]

    def log_seconds_gradient(self, x: Array) -> tuple[Array, Array]:
        """(n, D) -> (n,) and the gradient (n, D)"""
        mean, _, mean_x, _ = self.posterior.moments_gradient(x)
        logs = self.scaling.offset + self.scaling.scale * mean[0]
        return logs, self.scaling.scale * mean_x[0]
