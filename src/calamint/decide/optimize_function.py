"""The one-call form: optimise a Python function under constraints."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from calamint.acquire import Acquisition
from calamint.checks import check_integer
from calamint.decide.confirm import default_confirmations
from calamint.decide.optimizer import Optimizer
from calamint.decide.records import Recommendation, Suggestion
from calamint.errors import ProblemError, ResultError
from calamint.model import Model
from calamint.problem import Constraint, Parameter, Params, Problem

# What no other input will mend.
_WRONG = (NameError, ImportError, SyntaxError)
# After this many failures, and no success, it is not the input's fault.
_HOPELESS = 3


@final
@dataclass(frozen=True)
class Result:
    """What `optimize` found.

    Attributes:
        recommendation: The best confirmed input, if there is one; else the best by the model.
        believed: The best input by the model, measured or not.
        optimizer: Has everything that was measured, and can go on.
    """

    recommendation: Recommendation
    believed: Recommendation
    optimizer: Optimizer

    @property
    def params(self) -> Params:
        return self.recommendation.params

    @property
    def objective(self) -> float:
        return self.recommendation.objective

    @property
    def probability(self) -> float:
        return self.recommendation.probability

    @property
    def confident(self) -> bool:
        return self.recommendation.confident


def optimize(
    function: Callable[[Params], Mapping[str, Any] | float],
    space: Mapping[str, Parameter],
    minimize: str | None = None,
    maximize: str | None = None,
    constraints: Sequence[str | Constraint] = (),
    evaluations: int = 30,
    known: Mapping[str, Callable[[Params], float]] | None = None,
    acquisition: str | Acquisition = "pesc",
    model: Model | None = None,
    seed: int = 0,
    confirm: int | None = None,
    callback: Callable[[Suggestion, Mapping[str, Any]], None] | None = None,
) -> Result:
    """Evaluate a function where it is most useful, and recommend an input.

    Args:
        function: Takes the parameters as a dict and returns a dict with a value for the objective
            and for every constrained function; a plain number will do where there are no
            constraints. An exception, or a value of NaN or infinity, is a failed evaluation, and
            the search continues.
        space: The parameters.
        minimize: The name of the objective.
        maximize: The name of the objective, if it is maximised.
        constraints: Limits such as "latency_ms <= 2".
        evaluations: The number of evaluations.
        known: Functions that can be computed exactly from the parameters.
        acquisition: The acquisition function, by name or with settings.
        model: How functions are modelled.
        seed: The random seed.
        confirm: How many of the evaluations, the last ones, go to the recommended input; by default
            up to three, and no more than an eighth.
        callback: Called with every suggestion and its values; an exception in it ends the search.

    Returns:
        The recommendation, and the optimiser with everything that was measured.

    Raises:
        NameError: An exception that says that the function itself is wrong (`NameError`,
            `ImportError`, `SyntaxError`) is raised at once, and so is any other that the first
            three evaluations end with; if all evaluations fail, the last reason is raised.
    """
    problem = Problem(space, minimize, maximize, constraints, known=known)
    if not callable(function):
        raise ProblemError(
            f"function is {function!r}: write a function of the parameters (a dict)."
        )
    check_integer(evaluations, "evaluations", 1)
    optimizer = Optimizer(problem, acquisition, model, seed)
    if confirm is None:
        confirm = default_confirmations(problem, evaluations)
    check_integer(confirm, "confirm", 0)
    last: Exception | None = None
    for left in range(evaluations, 0, -1):
        suggestion = optimizer.confirm() if left <= confirm else None
        if suggestion is None:
            suggestion = optimizer.ask()
        assert suggestion is not None  # one place, and nothing is pending
        try:
            values = function(dict(suggestion.params))
        except _WRONG:
            raise
        except Exception as error:
            optimizer.fail(suggestion, f"{type(error).__name__}: {error}")
            last = error
            if not optimizer.history and len(optimizer.failures) == _HOPELESS:
                raise
            continue
        if not isinstance(values, Mapping) and len(problem.measured) == 1:
            values = {problem.measured[0]: values}
        if isinstance(values, Mapping):
            for name in problem.measured:
                if name not in values:
                    raise ResultError(f"values has no {name!r}: return a value for it.")
        optimizer.tell(suggestion, values)  # type: ignore[arg-type]
        last = ResultError(f"all evaluations failed; the last returned {values!r}.")
        if callback is not None:
            callback(suggestion, values)  # type: ignore[arg-type]
    if not optimizer.history and last is not None:
        raise last
    believed, observed = optimizer.recommend(), optimizer.recommend(kind="observed")
    return Result(observed if observed.confirmed else believed, believed, optimizer)
