"""The in-memory core: ask what to measure next, tell what was found, ask where the optimum is."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, final

import numpy as np

from calamint.acquire import ACQUISITIONS, PESC, Acquisition, Incumbent
from calamint.acquire.candidates import space_filling
from calamint.acquire.pesc import Information
from calamint.decide.answers import (
    Decision,
    FunctionPrediction,
    Prediction,
    Recommendation,
    Record,
    Suggestion,
)
from calamint.decide.booking import free_capacity, placement
from calamint.decide.maximise import maximise
from calamint.decide.recommend import Optimum, believed_optimum
from calamint.decide.results import ResultError, Value, read_values
from calamint.decide.threads import single_threaded
from calamint.model import Belief, Data, Model, believe, check_known
from calamint.problem import Params, Problem, ProblemError
from calamint.problem.errors import nearest
from calamint.problem.parameters import Array, finite, whole


@final
class Optimizer:
    """Decides what to measure next.

    problem      what is asked
    acquisition  "pesc" (expected information about the constrained optimum), "eic" (expected
                 improvement), "rs" or "rsdg" (rejection sampling) or "random"; or one with
                 settings, such as `PESC(solutions=50)`
    model        how functions are modelled: `cm.Model(...)`
    seed         same seed and same results give the same suggestions
    initial      how many space-filling inputs come first; by default one more than there are
                 parameters, and at least three
    delta        1 − δ is the probability of feasibility that an incumbent must have
    clock        where decision times are read from
    """

    def __init__(
        self,
        problem: Problem,
        acquisition: str | Acquisition = "pesc",
        model: Model | None = None,
        seed: int = 0,
        initial: int | None = None,
        delta: float = 0.05,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not isinstance(problem, Problem):
            raise ProblemError(f"problem is {problem!r}: write cm.Problem(...).")
        for constraint in problem.constraints:
            if constraint.passfail:
                raise ProblemError(
                    f"the constraint {constraint.name!r} is pass/fail, which is not modelled yet:"
                    " write a limit on a number, such as 'residual <= 0.1'."
                )
        self.problem = problem
        if model is not None and not isinstance(model, Model):
            raise ProblemError(f"model is {model!r}: write cm.Model(...).")
        self.model = model if model is not None else Model()
        self.model.check(problem)
        check_known(problem)
        self.acquisition = _acquisition(acquisition, problem)
        self.seed = whole(seed, "seed", 0)
        usual = max(3, len(problem.space) + 1)
        self.initial = usual if initial is None else whole(initial, "initial", 0)
        self.delta = _check_delta(delta)
        self._clock = clock
        self.history: list[Record] = []
        self.decisions: list[Decision] = []
        self._pending: dict[int, Suggestion] = {}
        self._ended: dict[int, str] = {}
        self._failures: list[tuple[Suggestion, str]] = []
        dimension = problem.space.dimension
        self._data = {name: Data.empty(dimension) for name in problem.measured}
        self._design = np.empty((0, dimension))
        self._last: Belief | None = None
        self._measured_belief: tuple[int, Belief] | None = None
        self._stepped_down: dict[int, str] = {}

    # -- asking -------------------------------------------------------------------------------

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions that were neither told, failed nor cancelled."""
        return tuple(self._pending.values())

    @single_threaded
    def ask(self) -> Suggestion | None:
        """The next job, with its resources booked; None while no task can start."""
        number = len(self.decisions)
        rng = np.random.default_rng([self.seed, number])
        free = free_capacity(self.problem.graph, [job.resources for job in self.pending])
        places = {task: placement(self.problem.graph, task, free) for task in self.problem.tasks}
        runnable = [task for task, place in places.items() if place is not None]
        if not runnable:
            return None
        task = runnable[int(rng.integers(len(runnable)))]
        point, bits, decision = self._decide(number, rng)
        params = self.problem.space.decode(point)
        place = places[task]
        assert place is not None
        point = self.problem.space.encode(params)
        suggestion = Suggestion(number, task, params, place, bits, point)
        self.decisions.append(decision)
        # A copy: what the caller does to the parameters must not reach the records.
        self._pending[number] = replace(suggestion, params=dict(params))
        return suggestion

    def _decide(
        self, number: int, rng: np.random.Generator
    ) -> tuple[Array, dict[str, float], Decision]:
        space = self.problem.space
        begin = self._clock()
        if len(self.history) + len(self._pending) < self.initial:
            point = self._design_point(number)
            return point, {}, Decision(number, "initial", {"total": self._clock() - begin})
        if not self.acquisition.uses_model:
            point = space.snap(rng.random(space.dimension))
            return point, {}, Decision(number, "random", {"total": self._clock() - begin})
        warnings: list[str] = []
        # A decision always comes back: fewer samples if the model fails, and at last no model.
        for model in (self.model, replace(self.model, hyperparameters="map")):
            try:
                point, bits, seconds = self._decide_by_model(model, rng)
            except Exception as error:
                warnings.append(f"{model.hyperparameters} model: {type(error).__name__}: {error}")
            else:
                stepped_down = self._stepped_down.get(len(self.history))
                warnings += [stepped_down] if stepped_down else []
                return point, bits, Decision(number, "model", seconds, tuple(warnings))
        seconds = {"total": self._clock() - begin}
        point = self._design_point(number)
        return point, {}, Decision(number, "fallback", seconds, tuple(warnings))

    def _design_point(self, number: int) -> Array:
        """The number-th point of one fixed space-filling sequence."""
        if number >= len(self._design):
            rng = np.random.default_rng([self.seed, 2**32 - 1])
            self._design = space_filling(self.problem.space, max(64, 2 * number), rng)
        return self._design[number]

    def _decide_by_model(
        self, model: Model, rng: np.random.Generator
    ) -> tuple[Array, dict[str, float], dict[str, float]]:
        times = [self._clock()]
        belief = self._believe(model)
        self._last = belief
        times.append(self._clock())
        incumbent = self._incumbent(belief, rng)
        times.append(self._clock())
        utility = self.acquisition.prepare(self._with_pending(belief), incumbent, rng)
        times.append(self._clock())
        near = np.vstack([incumbent.point, self._near(3)])
        point, height = maximise(utility, self.problem.space, near, rng)
        if math.isnan(height):
            raise FloatingPointError("the utility is not a number anywhere")
        times.append(self._clock())
        stages = ("model", "incumbent", "acquisition", "maximise")
        seconds = dict(zip(stages, np.diff(times).tolist(), strict=True))
        bits = {}
        if isinstance(utility, Information):
            bits = {name: float(column[0]) for name, column in _in_bits(utility, point).items()}
        return point, bits, {**seconds, "total": times[-1] - times[0]}

    def _incumbent(self, belief: Belief, rng: np.random.Generator) -> Incumbent:
        fine = self.acquisition.improves
        optimum = believed_optimum(belief, self._near(), self.delta, rng, fine)
        return Incumbent(optimum.point, optimum.objective if optimum.confident else None)

    def _with_pending(self, belief: Belief) -> Belief:
        """The belief as if every pending job had found what is expected of it."""
        for job in self.pending:
            belief = belief.believing(job.point, self.problem.tasks[job.task].measures)
        return belief

    def _near(self, most: int = 50) -> Array:
        """(k, D) measured inputs, the best and the newest first."""
        if not self.history:
            return np.empty((0, self.problem.space.dimension))
        ranked = sorted(range(len(self.history)), key=self._rank)
        newest = range(len(self.history) - 1, -1, -1)
        order = dict.fromkeys(index for pair in zip(ranked, newest, strict=True) for index in pair)
        return np.array([self.history[index].point for index in list(order)[:most]])

    def _rank(self, index: int) -> tuple[bool, float]:
        record = self.history[index]
        met = self._met(record)
        name = self.problem.objective.name
        value = record.values.get(name)
        objective = math.inf if value is None else self.problem.objective.inward(value)
        return (not met, objective)

    def _met(self, record: Record) -> bool:
        return all(
            constraint.met(record.values[constraint.name])
            if constraint.name in record.values
            else constraint.name in self.problem.known
            and constraint.met(self.problem.known[constraint.name](record.params))
            for constraint in self.problem.constraints
        )

    def _believe(self, model: Model) -> Belief:
        """The belief given all that was measured; computed once for each state of the data.

        The random stream depends on the data's version only, so that looking (`predict`,
        `recommend`) never changes what is suggested next.
        """
        version = len(self.history)
        if model is self.model and self._measured_belief and self._measured_belief[0] == version:
            return self._measured_belief[1]
        rng = np.random.default_rng([self.seed, version, 1])
        try:
            belief = believe(self.problem, model, self._data, rng, self._last)
        except (np.linalg.LinAlgError, ArithmeticError) as error:
            # Fewer samples rather than no belief.
            self._stepped_down[version] = f"{model.hyperparameters} model: {error}"
            simpler = replace(model, hyperparameters="map")
            belief = believe(self.problem, simpler, self._data, rng)
        if model is self.model:
            self._measured_belief = (version, belief)
        return belief

    # -- telling ------------------------------------------------------------------------------

    def tell(
        self, suggestion: Suggestion, values: Mapping[str, Value], seconds: float | None = None
    ) -> None:
        """What a suggested job measured: a number for each function, or (value, standard error).

        `seconds` is how long the job took.
        """
        self._check_pending(suggestion)
        measures = self.problem.tasks[suggestion.task].measures
        read = read_values(values, measures, complete=True)
        if seconds is not None and not (
            isinstance(seconds, int | float) and 0 <= seconds < math.inf
        ):
            raise ResultError(f"seconds is {seconds!r}: write a number that is not negative.")
        asked = self._pending[suggestion.number]
        self._end(suggestion, "told")
        self._record(asked.params, asked.point, read, suggestion.task, seconds)

    def fail(self, suggestion: Suggestion, reason: str) -> None:
        """A suggested job ended without a result; its resources are free again."""
        self._check_pending(suggestion)
        self._end(suggestion, "failed")
        self._failures.append((suggestion, str(reason)))

    def cancel(self, suggestion: Suggestion) -> None:
        """A suggested job will not be run; its resources are free again."""
        self._check_pending(suggestion)
        self._end(suggestion, "cancelled")

    def add(self, params: Mapping[str, Any], values: Mapping[str, Value]) -> None:
        """Measurements that were not asked for: any of the functions, at any input."""
        accepted = self.problem.space.accept(params)
        read = read_values(values, self.problem.measured, complete=False)
        self._record(accepted, self.problem.space.encode(accepted), read, None, None)

    @property
    def failures(self) -> tuple[tuple[Suggestion, str], ...]:
        """Failed suggestions with their reasons."""
        return tuple(self._failures)

    def _check_pending(self, suggestion: Suggestion) -> None:
        if not isinstance(suggestion, Suggestion):
            raise ResultError(f"suggestion is {suggestion!r}: write what ask() returned.")
        if self._pending.get(suggestion.number) != suggestion:
            ended = self._ended.get(suggestion.number)
            what = f"was already {ended}" if ended else "was not asked for here"
            raise ResultError(f"suggestion {suggestion.number} {what}: nothing was changed.")

    def _end(self, suggestion: Suggestion, how: str) -> None:
        del self._pending[suggestion.number]
        self._ended[suggestion.number] = how

    def _record(
        self,
        params: Params,
        point: Array,
        read: Mapping[str, tuple[float, float]],
        task: str | None,
        seconds: float | None,
    ) -> None:
        for name, (value, noise) in read.items():
            if name == self.problem.objective.name:
                value = self.problem.objective.inward(value)
            self._data[name] = self._data[name].append(point, value, noise)
        values = {name: value for name, (value, _) in read.items()}
        self.history.append(Record(params, values, task, seconds, point))

    # -- looking ------------------------------------------------------------------------------

    @single_threaded
    def predict(self, params: Mapping[str, Any]) -> Prediction:
        """Mean, deviation and probability of meeting the limits at one input."""
        point = self.problem.space.encode(params)[None]
        belief = self._believe(self.model)
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
        return _in_bits(self.information(), x)

    @single_threaded
    def information(self) -> Information:
        """What `gains` computes with: drawn solutions, and beliefs given each of them."""
        rng = np.random.default_rng([self.seed, len(self.history), len(self._pending), 3])
        belief = self._believe(self.model)
        incumbent = self._incumbent(belief, rng)
        method = self.acquisition if isinstance(self.acquisition, PESC) else PESC()
        return method.prepare(self._with_pending(belief), incumbent, rng)

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
        delta = self.delta if delta is None else _check_delta(delta)
        belief = self._believe(self.model)
        if kind == "observed":
            return self._best_observed(belief, delta)
        if kind != "believed":
            raise ProblemError(f"kind is {kind!r}: write 'believed' or 'observed'.")
        rng = np.random.default_rng([self.seed, len(self.history), 2])
        optimum = believed_optimum(belief, self._near(), delta, rng)
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
            if self._met(record) and (name in record.values or name in self.problem.known)
        ]
        if whole:
            best = min(whole, key=lambda index: self._rank(index)[1])
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


def _acquisition(acquisition: str | Acquisition, problem: Problem) -> Acquisition:
    if isinstance(acquisition, str):
        if acquisition not in ACQUISITIONS:
            raise ProblemError(
                f"acquisition is {acquisition!r}: {nearest(acquisition, ACQUISITIONS)}"
            )
        acquisition = ACQUISITIONS[acquisition]()
    if not isinstance(acquisition, Acquisition):
        raise ProblemError(
            f"acquisition is {acquisition!r}: write one of {', '.join(map(repr, ACQUISITIONS))}."
        )
    whole = all(set(task.measures) == set(problem.measured) for task in problem.tasks.values())
    if acquisition.uses_model and not whole:
        raise ProblemError(
            "the problem has tasks that measure only some functions, and choosing between them is"
            " not built yet: use problem.coupled(), or acquisition='random'."
        )
    return acquisition


def _in_bits(utility: Information, x: Array) -> dict[str, Array]:
    """(n, D) or (D,) -> the gain of each function that can be measured, (n,) each."""
    problem = utility.belief.problem
    gains = utility.gains(np.atleast_2d(x)) / math.log(2)
    return {
        name: gains[:, index]
        for index, name in enumerate(problem.functions)
        if name not in problem.known
    }


def _check_delta(delta: float) -> float:
    number = finite(delta)
    if number is None or not 0 < number < 1:
        raise ProblemError(f"delta is {delta!r}: write a number between 0 and 1.")
    return number
