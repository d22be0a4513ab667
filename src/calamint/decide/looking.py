"""What an optimiser answers without changing anything: predictions, bits, recommendations."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from calamint.acquire import PESC, Acquisition, Utility
from calamint.acquire.pesc import Information
from calamint.decide.answers import FunctionPrediction, Prediction, Recommendation, Record
from calamint.decide.history import met, near_points, rank
from calamint.decide.recommend import Optimum, believed_optimum
from calamint.decide.results import ResultError
from calamint.decide.settings import named_acquisition, read_delta
from calamint.decide.thinker import Known, Thinker, in_bits
from calamint.decide.threads import single_threaded
from calamint.model import Belief
from calamint.problem import Problem, ProblemError
from calamint.problem.parameters import Array


class Looking(ABC):
    """Answers from what is known."""

    problem: Problem
    acquisition: Acquisition
    seed: int
    delta: float
    history: list[Record]
    _thinker: Thinker

    @abstractmethod
    def _known(self) -> Known:
        """All that answers may depend on."""

    @single_threaded
    def predict(self, params: Mapping[str, Any]) -> Prediction:
        """Mean, deviation and probability of meeting the limits at one input."""
        point = self.problem.space.encode(params)[None]
        belief = self._thinker.believe(self._known())
        functions = {}
        for name, function in belief.functions.items():
            mean, deviation = (float(moment[0]) for moment in function.mixture(point))
            is_objective = name == self.problem.objective.name
            functions[name] = FunctionPrediction(
                mean=self.problem.objective.outward(mean) if is_objective else mean,
                deviation=deviation,
                probability=None if is_objective else float(belief.probability_of(name, point)[0]),
            )
        return Prediction(functions, float(belief.probability(point)[0]))

    @single_threaded
    def gains(self, points: Any) -> dict[str, Array]:
        """What measuring each function at each point would tell about the optimum, in bits.

        points  a list of parameter dicts, or a DataFrame with a column for each parameter

        Returns an array for each function that can be measured; a task tells the sum of what it
        measures. Pending jobs count as if they had found what is expected.
        """
        x = self._encode_points(points)
        return in_bits(self.information().diverging(), self._thinker.problem, x)

    def information(self) -> Information:
        """What `gains` computes with: drawn solutions, and beliefs given each of them."""
        method = self.acquisition if isinstance(self.acquisition, PESC) else PESC()
        utility = self.utility(method)
        assert isinstance(utility, Information)
        return utility

    @single_threaded
    def utility(self, acquisition: str | Acquisition) -> Utility:
        """What any acquisition makes of what is believed now, pending jobs included.

        One that cannot value single functions still values measuring everything.
        """
        method = named_acquisition(acquisition)
        method.check(self.problem)
        known = self._known()
        rng = np.random.default_rng([self.seed, known.version, len(known.pending), 3])
        belief = self._thinker.believe(known)
        incumbent = self._thinker.incumbent(belief, known, rng, method.improves)
        return method.prepare(
            self._thinker.with_pending(belief, known.pending, rng), incumbent, rng
        )

    def _encode_points(self, points: Any) -> Array:
        records = points.to_dict("records") if hasattr(points, "to_dict") else points
        if isinstance(records, Mapping) or not isinstance(records, list | tuple):
            raise ProblemError(
                f"points is {points!r}: write a list of parameter dicts, or a DataFrame."
            )
        rows = []
        for index, params in enumerate(records):
            try:
                rows.append(self.problem.space.encode(params))
            except ProblemError as error:
                raise ProblemError(f"points[{index}]: {error}") from None
        return np.array(rows).reshape(-1, self.problem.space.dimension)

    @single_threaded
    def recommend(
        self,
        delta: float | None = None,
        kind: Literal["believed", "observed"] = "believed",
    ) -> Recommendation:
        """The best input, from measured data only, and all of it.

        kind="believed"  the lowest expected objective in the whole space such that all limits are
                         met with probability 1 − delta; or the most probably feasible input, with
                         confident=False
        kind="observed"  the best measured input that met all limits when measured
        """
        delta = self.delta if delta is None else read_delta(delta)
        known = self._known()
        belief = self._thinker.believe(known)
        if kind == "observed":
            return self._best_observed(belief, delta)
        if kind != "believed":
            raise ProblemError(f"kind is {kind!r}: write 'believed' or 'observed'.")
        rng = np.random.default_rng([self.seed, known.version, 2])
        near = near_points(self.problem, self.history)
        optimum = believed_optimum(belief, near, delta, rng)
        return self._recommendation(belief, optimum)

    def _recommendation(self, belief: Belief, optimum: Optimum) -> Recommendation:
        scaling = belief.objective.scaling
        return Recommendation(
            params=self.problem.space.decode(optimum.point),
            objective=self.problem.objective.outward(
                scaling.offset + scaling.scale * optimum.objective
            ),
            probability=optimum.probability,
            confident=optimum.confident,
        )

    def _best_observed(self, belief: Belief, delta: float) -> Recommendation:
        name = self.problem.objective.name
        if not self.history:
            raise ResultError("nothing has been measured: tell a result before asking for it.")
        points = np.array([record.point for record in self.history])
        log_probability = belief.log_probability(points)
        whole = [
            index
            for index, record in enumerate(self.history)
            if met(self.problem, record) and (name in record.values or name in self.problem.known)
        ]
        if whole:
            best = min(whole, key=lambda index: rank(self.problem, self.history[index])[1])
        else:
            best = int(np.argmax(log_probability))
        record = self.history[best]
        value = record.values.get(name)
        if value is None:
            value = self.predict(record.params)[name].mean
        probability = math.exp(log_probability[best])
        return Recommendation(
            params=record.params,
            objective=value,
            probability=probability,
            confident=bool(whole) and probability >= 1 - delta,
        )
