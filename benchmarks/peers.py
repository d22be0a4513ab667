"""The tools that Calamint is compared with, in the form that the harness drives.

Runs in `.venv-peers` (`make peers-setup`), never in Calamint's own environment.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calamint.testbed import SolvedProblem
from starts import starting_points


class Observed:
    """What all peers share: the data so far, and the best measured feasible point."""

    def __init__(self, solved: SolvedProblem, seed: int, starts: int) -> None:
        self.solved, self.seed = solved, seed
        self.starts = starting_points(solved, seed, starts)
        self.inputs: list[np.ndarray[Any, Any]] = []
        self.values: list[dict[str, float]] = []
        self.params: list[dict[str, Any]] = []

    def margins(self, values: Mapping[str, float]) -> list[float]:
        """One number a limit, not negative where it is met."""
        out = []
        for limit in self.solved.problem.constraints:
            if math.isfinite(limit.low):
                out.append(values[limit.name] - limit.low)
            if math.isfinite(limit.high):
                out.append(limit.high - values[limit.name])
        return out

    def ask(self) -> tuple[str, Mapping[str, Any]]:
        (task,) = self.solved.problem.tasks
        if self.starts:
            return task, self.starts.pop(0)
        return task, self.solved.problem.space.decode(np.clip(self.choose(), 0, 1))

    def choose(self) -> np.ndarray[Any, Any]:
        raise NotImplementedError

    def tell(self, task: str, params: Mapping[str, Any], values: Mapping[str, float]) -> None:  # noqa: ARG002
        self.inputs.append(self.solved.problem.space.encode(params))
        self.values.append(dict(values))
        self.params.append(dict(params))

    def recommend(self) -> Mapping[str, Any] | None:
        name = self.solved.problem.objective.name
        feasible = [
            (values[name], index)
            for index, values in enumerate(self.values)
            if min(self.margins(values), default=0.0) >= 0
        ]
        return self.params[min(feasible)[1]] if feasible else None


def fit_models(inputs: np.ndarray[Any, Any], columns: list[np.ndarray[Any, Any]]) -> Any:
    """BoTorch's default GP for each column of values, fitted by its default MAP."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x = torch.tensor(inputs, dtype=torch.double)
    models = []
    for column in columns:
        y = torch.tensor(column, dtype=torch.double)[:, None]
        model = SingleTaskGP(x, y, outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        models.append(model)
    return ModelListGP(*models)


class BoTorchLogCEI(Observed):
    """`LogConstrainedExpectedImprovement`; while nothing is feasible, the probability of it."""

    def choose(self) -> np.ndarray[Any, Any]:
        import torch
        from botorch.acquisition.analytic import (
            LogConstrainedExpectedImprovement,
            LogProbabilityOfFeasibility,
        )
        from botorch.optim import optimize_acqf

        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        torch.manual_seed(1000 * self.seed + len(self.values))
        name = self.solved.problem.objective.name
        margins = np.array([self.margins(values) for values in self.values])
        objective = np.array([values[name] for values in self.values])
        inputs = np.array(self.inputs)
        model = fit_models(inputs, [objective, *margins.T])
        limits = {index + 1: (0.0, None) for index in range(margins.shape[1])}
        feasible = np.all(margins >= 0, axis=1)
        if feasible.any():
            acquisition = LogConstrainedExpectedImprovement(
                model, float(objective[feasible].min()), 0, limits, maximize=False
            )
        else:
            acquisition = LogProbabilityOfFeasibility(model, limits)
        bounds = torch.stack([torch.zeros(inputs.shape[1]), torch.ones(inputs.shape[1])]).double()
        point, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
        chosen: np.ndarray[Any, Any] = point[0].detach().numpy()
        return chosen


@dataclass(frozen=True)
class PeerMaker:
    """A picklable recipe for a peer."""

    kind: type[Observed]
    starts: int = 3

    def __call__(self, solved: SolvedProblem, seed: int) -> Observed:
        return self.kind(solved, seed, self.starts)
