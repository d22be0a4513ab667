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

    def slacks(self, values: Mapping[str, float]) -> list[float]:
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
            if min(self.slacks(values), default=0.0) >= 0
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


class BoTorch(Observed):
    """Three models, an acquisition and its maximisation, with BoTorch's defaults."""

    def choose(self) -> np.ndarray[Any, Any]:
        import torch
        from botorch.optim import optimize_acqf

        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        torch.manual_seed(1000 * self.seed + len(self.values))
        name = self.solved.problem.objective.name
        slacks = np.array([self.slacks(values) for values in self.values])
        objective = np.array([values[name] for values in self.values])
        acquisition = self.acquisition(np.array(self.inputs), objective, slacks)
        dimension = len(self.inputs[0])
        bounds = torch.stack([torch.zeros(dimension), torch.ones(dimension)]).double()
        point, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
        chosen: np.ndarray[Any, Any] = point[0].detach().numpy()
        return chosen

    def acquisition(
        self,
        inputs: np.ndarray[Any, Any],
        objective: np.ndarray[Any, Any],
        slacks: np.ndarray[Any, Any],
    ) -> Any:
        raise NotImplementedError


class BoTorchLogCEI(BoTorch):
    """`LogConstrainedExpectedImprovement`; while nothing is feasible, the probability of it."""

    def acquisition(
        self,
        inputs: np.ndarray[Any, Any],
        objective: np.ndarray[Any, Any],
        slacks: np.ndarray[Any, Any],
    ) -> Any:
        from botorch.acquisition.analytic import (
            LogConstrainedExpectedImprovement,
            LogProbabilityOfFeasibility,
        )

        model = fit_models(inputs, [objective, *slacks.T])
        limits = {index + 1: (0.0, None) for index in range(slacks.shape[1])}
        feasible = np.all(slacks >= 0, axis=1)
        if feasible.any():
            return LogConstrainedExpectedImprovement(
                model, float(objective[feasible].min()), 0, limits, maximize=False
            )
        return LogProbabilityOfFeasibility(model, limits)


class BoTorchLogNEI(BoTorch):
    """`qLogNoisyExpectedImprovement` with constraints."""

    def acquisition(
        self,
        inputs: np.ndarray[Any, Any],
        objective: np.ndarray[Any, Any],
        slacks: np.ndarray[Any, Any],
    ) -> Any:
        import torch
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.objective import GenericMCObjective

        # BoTorch maximises, and takes a constraint as met where it is not positive.
        model = fit_models(inputs, [-objective, *slacks.T])
        return qLogNoisyExpectedImprovement(
            model,
            torch.tensor(inputs, dtype=torch.double),
            objective=GenericMCObjective(lambda samples, X=None: samples[..., 0]),  # noqa: ARG005
            constraints=[
                lambda samples, index=index: -samples[..., index + 1]
                for index in range(slacks.shape[1])
            ],
        )


class RandomSearch(Observed):
    """Uniform in the encoded space."""

    def choose(self) -> np.ndarray[Any, Any]:
        rng = np.random.default_rng([self.seed, len(self.values), 5])
        return rng.random(self.solved.problem.space.dimension)


class OptunaGP(Observed):
    """`GPSampler` with constraints, told that the functions are noise-free."""

    deterministic = True

    def sampler(self, starts: int) -> Any:
        import optuna
        import torch

        torch.set_num_threads(1)
        return optuna.samplers.GPSampler(
            seed=self.seed, n_startup_trials=starts, deterministic_objective=self.deterministic
        )

    def __init__(self, solved: SolvedProblem, seed: int, starts: int) -> None:
        import optuna

        super().__init__(solved, seed, starts)
        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(sampler=self.sampler(starts))
        self.axes = {
            f"x{i}": optuna.distributions.FloatDistribution(0, 1)
            for i in range(solved.problem.space.dimension)
        }
        self.trial: Any = None

    def choose(self) -> np.ndarray[Any, Any]:
        self.trial = self.study.ask(self.axes)
        return np.array([self.trial.params[axis] for axis in self.axes])

    def tell(self, task: str, params: Mapping[str, Any], values: Mapping[str, float]) -> None:
        super().tell(task, params, values)
        if self.trial is None:
            fixed = zip(self.axes, self.inputs[-1].tolist(), strict=True)
            self.study.enqueue_trial(dict(fixed))
            self.trial = self.study.ask(self.axes)
        for index, margin in enumerate(self.slacks(values)):
            self.trial.set_constraint(f"c{index}", -margin)
        self.study.tell(self.trial, values[self.solved.problem.objective.name])
        self.trial = None


class OptunaNoisyGP(OptunaGP):
    """The same, told that the functions are noisy."""

    deterministic = False


class OptunaTPE(OptunaGP):
    """`TPESampler` with constraints."""

    def sampler(self, starts: int) -> Any:
        import optuna

        return optuna.samplers.TPESampler(seed=self.seed, n_startup_trials=starts)


@dataclass(frozen=True)
class PeerMaker:
    """A picklable recipe for a peer."""

    kind: type[Observed]
    starts: int = 3

    def __call__(self, solved: SolvedProblem, seed: int) -> Observed:
        return self.kind(solved, seed, self.starts)
