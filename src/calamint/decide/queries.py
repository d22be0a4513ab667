"""Questions that change nothing: predictions, gains and recommendations.

Each takes what a decision takes, and returns an answer and a state, which keeps the fitted model.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, final

import numpy as np

from calamint.acquire import PESC, Acquisition, AcquisitionFunction, Information
from calamint.arrays import Array
from calamint.checks import did_you_mean
from calamint.decide.blas_threads import single_threaded
from calamint.decide.clock import Clock
from calamint.decide.decision import gains_in_bits
from calamint.decide.failures import ModelledProblem, add_success_constraints
from calamint.decide.fallback import first_success
from calamint.decide.measured import MeasuredInput, input_key, measured_inputs
from calamint.decide.observations import Observations
from calamint.decide.recommend import LIKELY, best_likely, constrained_optimum, likely_optimum
from calamint.decide.records import Recommendation, near_points, within_bounds
from calamint.decide.settings import Settings
from calamint.decide.state import Fit, State
from calamint.decide.update import fantasized_surrogate, fitted, incumbent_of, model_attempts
from calamint.errors import ModelError, ProblemError, ResultError
from calamint.model import Model, Surrogate, feasibility
from calamint.problem import Params, Problem

_LEVELS = np.array([0.025, 0.5, 0.975])


@final
@dataclass(frozen=True)
class FunctionPrediction:
    """One function at one input, noise-free, in the user's units.

    Attributes:
        mean: Of a binary constraint, the probability that an outcome passes.
        std: The standard deviation.
        probability: Of meeting its limits; None for the objective.
        median: Half of the probability lies below; mean and median differ on a curved scale.
        interval: Contains the value with a probability of 95 %.
    """

    mean: float
    std: float
    probability: float | None
    median: float
    interval: tuple[float, float]

    def __str__(self) -> str:
        low, high = self.interval
        within = (
            ""
            if self.probability is None
            else f", within its limits with probability {self.probability:.3g}"
        )
        return f"{self.median:.6g} (95 %: {low:.6g} to {high:.6g}){within}"


@final
@dataclass(frozen=True)
class Prediction:
    """What is believed at one input: `prediction["latency_ms"].mean`; `probability` is joint."""

    functions: dict[str, FunctionPrediction]
    probability: float

    def __getitem__(self, name: str) -> FunctionPrediction:
        if name not in self.functions:
            raise ProblemError(
                f"the prediction has no {name!r}: {did_you_mean(name, self.functions)}"
            )
        return self.functions[name]

    def __str__(self) -> str:
        lines = [f"{name}: {function}" for name, function in self.functions.items()]
        return "\n".join([*lines, f"feasible with probability {self.probability:.3g}"])

    def __iter__(self) -> Iterator[str]:
        """The names of the functions."""
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def __contains__(self, name: object) -> bool:
        return name in self.functions


@final
@dataclass(frozen=True)
class Query:
    """What questions are asked of: all that is known, and the model fitted to it.

    Attributes:
        state: With that model in it.
    """

    modelled: ModelledProblem
    settings: Settings
    state: State
    observations: Observations
    surrogate: Surrogate

    @staticmethod
    @single_threaded
    def of(
        problem: Problem, settings: Settings, state: State, observations: Observations, clock: Clock
    ) -> "Query":
        """Fit the model, if the state does not have it."""
        given = add_success_constraints(problem, observations)
        state = state.compatible_with(given.problem)

        def fit_model(model: Model) -> Fit:
            return fitted(given, settings, model, state, observations.version, clock)

        found, warnings = first_success(model_attempts(settings.model, fit_model))
        if found is not None:
            state = replace(state, fit=found)
            return Query(given, settings, state, observations, found.surrogate)
        if state.update is None:
            raise ModelError(f"no model can be fitted to what was measured: {warnings[-1]}.")
        last = state.update.surrogate.extended(given.data)
        return Query(given, settings, state, observations, last)

    def _rng(self, *stream: int) -> np.random.Generator:
        """Randomness depends on the data and on what is asked, so that asking changes nothing."""
        return np.random.default_rng([self.settings.seed, self.observations.version, *stream])

    @single_threaded
    def predict(self, params: Mapping[str, Any]) -> Prediction:
        """Mean, std and probability of meeting the limits at one input."""
        stated, surrogate = self.modelled.original, self.surrogate
        point = stated.space.encode(params)[None]
        functions = {}
        for name, function in surrogate.functions.items():
            mean, std = (float(moment[0]) for moment in function.mixture(point))
            probability = None
            if name != stated.objective.name:
                probability = float(feasibility.probability_of(surrogate, name, point)[0])
            low, median, high = map(float, function.quantiles(point, _LEVELS)[0])
            functions[name] = FunctionPrediction(mean, std, probability, median, (low, high))
        return Prediction(functions, float(feasibility.probability(surrogate, point)[0]))

    @single_threaded
    def gains(self, points: Any) -> dict[str, Array]:
        """Bits that measuring each function at each point would yield about the optimum."""
        x = _encode_points(self.modelled.original, points)
        return gains_in_bits(self.information().by_kl(), self.modelled.problem, x)

    def information(self) -> Information:
        """What `gains` computes with: drawn solutions, and beliefs given each of them."""
        return self._information

    @cached_property
    def _information(self) -> Information:
        method = self.settings.acquisition
        acq_function = self.acquisition_function(method if isinstance(method, PESC) else PESC())
        assert isinstance(acq_function, Information)
        return acq_function

    @single_threaded
    def acquisition_function(self, method: Acquisition) -> AcquisitionFunction:
        """What any acquisition makes of what is believed, pending jobs included."""
        method.check(self.modelled.original)
        observations, settings = self.observations, self.settings
        rng = self._rng(len(observations.pending), 3)
        incumbent = incumbent_of(
            self.surrogate, self.modelled, settings, observations, rng, method.uses_incumbent_value
        )
        fantasized = fantasized_surrogate(
            self.surrogate, self.modelled, settings, observations, rng
        )
        return method.build(fantasized, incumbent, rng)

    @single_threaded
    def recommend(self, delta: float, kind: Literal["believed", "observed"]) -> Recommendation:
        """The best input, from measured data only, and all of it."""
        if kind == "observed":
            return self._best_observed(delta)
        if kind != "believed":
            raise ProblemError(f"kind is {kind!r}: write 'believed' or 'observed'.")
        stated = self.modelled.original
        near = near_points(stated, self.observations.history)
        optimum = constrained_optimum(self.surrogate, near, delta, self._rng(2))
        if not optimum.confident:
            rng = self._rng(4)
            likely = likely_optimum(self.surrogate, near, delta, self._typical_objective, rng)
            optimum = optimum if likely is None else likely
        params = stated.space.decode(optimum.point)
        here = measured_inputs(stated, self.observations.history).get(input_key(params))
        if here is not None and here.confirmed(stated):
            return self._confirmed(here, delta)
        objective, interval = self._objective_at(optimum.point)
        return Recommendation(
            params, objective, optimum.probability, optimum.confident, interval, False
        )

    def _objective_at(self, point: Array) -> tuple[float, tuple[float, float]]:
        """The mean on the model's scale, and the interval, both in the user's units."""
        function = self.surrogate.objective
        low, _, high = map(float, function.quantiles(point[None], _LEVELS)[0])
        mean = self.surrogate.expected_objective(point[None])
        return float(function.transform.to_user(mean)[0]), (low, high)

    @cached_property
    def exact(self) -> frozenset[str]:
        """Functions that gave the same value whenever they were measured again."""
        return frozenset(
            name
            for name, data in self.observations.data.items()
            if name not in self.modelled.problem.binary and data.is_exact
        )

    @cached_property
    def _typical_objective(self) -> float:
        """What is expected at the inputs that were measured: the median, standardised."""
        history = within_bounds(self.modelled.original.space, self.observations.history)
        if not history:
            return 0.0
        points = np.array([record.point for record in history])
        return float(np.median(self.surrogate.expected_objective(points)))

    def expected_objective(self, params: Params) -> tuple[float, float]:
        """The mean and the standard deviation of a measurement, standardised."""
        point = self.modelled.original.space.encode(params)
        posterior = self.surrogate.objective.posterior
        mean, variance = (moment[:, 0] for moment in posterior.mean_variance(point[None]))
        return float(mean.mean()), float(np.sqrt(np.mean(variance + posterior.noise) + mean.var()))

    def at_measured(self, inputs: Sequence[MeasuredInput]) -> tuple[Array, Array]:
        """(n,) objectives, standardised, and (n,) probabilities of being feasible.

        Functions without noise are known where they were measured, however rough they are
        elsewhere.
        """
        points = np.array([each.point for each in inputs]).reshape(
            len(inputs), self.modelled.original.space.dimension
        )
        known = [self.exact & set(each.values) for each in inputs]
        probability = np.empty(len(inputs))
        for met in set(known):
            same = [index for index, each in enumerate(known) if each == met]
            probability[same] = feasibility.probability(self.surrogate, points[same], met=met)
        name = self.modelled.original.objective.name
        if name not in self.exact:
            return self.surrogate.expected_objective(points), probability
        values = np.array([each.values[name] for each in inputs])
        return self.surrogate.objective.transform.to_model(values), probability

    def _confirmed(self, here: MeasuredInput, delta: float) -> Recommendation:
        """An input where every function was measured and every limit met."""
        value, probability = (float(each[0]) for each in self.at_measured([here]))
        objective = float(self.surrogate.objective.transform.to_user(np.array([value]))[0])
        _, interval = self._objective_at(here.point)
        if self.modelled.original.objective.name in self.exact:
            interval = (objective, objective)
        return Recommendation(
            here.params,
            objective,
            probability,
            probability >= 1 - delta,
            interval,
            probability >= LIKELY,
        )

    def _best_observed(self, delta: float) -> Recommendation:
        """The confirmed input with the best posterior; without one, the most probably feasible."""
        stated = self.modelled.original
        inputs = list(measured_inputs(stated, self.observations.history).values())
        if not inputs:
            raise ResultError(
                "nothing has been measured within the bounds: tell a result before asking for it."
            )
        confirmed = [each for each in inputs if each.confirmed(stated)]
        best = (
            best_likely(*self.at_measured(confirmed), delta, self._typical_objective)
            if confirmed
            else None
        )
        if best is not None:
            return self._confirmed(confirmed[best], delta)
        points = np.array([each.point for each in inputs])
        log_probability = feasibility.log_probability(self.surrogate, points)
        index = int(np.argmax(log_probability))
        objective, interval = self._objective_at(points[index])
        probability = math.exp(log_probability[index])
        confident = probability >= 1 - delta
        return Recommendation(
            inputs[index].params, objective, probability, confident, interval, False
        )


def _encode_points(problem: Problem, points: Any) -> Array:
    """(n, D) from a list of parameter dicts, or a DataFrame with a column for each parameter"""
    records = points.to_dict("records") if hasattr(points, "to_dict") else points
    if isinstance(records, Mapping) or not isinstance(records, list | tuple):
        raise ProblemError(
            f"points is {points!r}: write a list of parameter dicts, or a DataFrame."
        )
    rows = []
    for index, params in enumerate(records):
        try:
            rows.append(problem.space.encode(params))
        except ProblemError as error:
            raise ProblemError(f"points[{index}]: {error}") from None
    return np.array(rows).reshape(-1, problem.space.dimension)
