"""Reading limits as people write them: `latency_ms <= 2`, `6.5 <= ph <= 7.5`, `converges`,
`P(green) >= 0.95`."""

import math
import re
from dataclasses import dataclass
from statistics import NormalDist
from typing import final

from calamint.checks import check_name, finite
from calamint.errors import ProblemError

_OPERATOR = re.compile(r"(<=|>=|==|!=|=<|=>|<|>|=|≤|≥)")
_RATE = re.compile(r"P\(\s*(\w+)\s*\)")
_EXAMPLE = "write a limit such as 'latency_ms <= 2' or '6.5 <= ph <= 7.5'"


@final
@dataclass(frozen=True)
class Constraint:
    """A function whose value must lie in [low, high]; one end may be infinite.

    Args:
        name: The name of the function.
        low: The lower limit.
        high: The upper limit.
        binary: Whether it is measured as True or False.
        passes: The rate at which a binary constraint must pass, ½ by default; giving it implies
            `binary`. Its latent score must then lie in [Φ⁻¹(passes), ∞).
    """

    name: str
    low: float = -math.inf
    high: float = math.inf
    binary: bool = False
    passes: float | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "a constraint")
        if self.passes is not None:
            object.__setattr__(self, "binary", True)
        if self.binary:
            score = self._least_score()
            if (self.low, self.high) not in ((-math.inf, math.inf), (score, math.inf)):
                raise ProblemError(
                    f"the constraint on {self.name!r} is pass/fail and has limits: write either."
                )
            object.__setattr__(self, "low", score)
        for end in ("low", "high"):
            limit = getattr(self, end)
            if limit not in (-math.inf, math.inf) and finite(limit) is None:
                raise ProblemError(
                    f"the limit {limit!r} on {self.name!r} is not a number: {_EXAMPLE}."
                )
            object.__setattr__(self, end, float(limit))
        if math.isinf(self.low) and math.isinf(self.high):
            raise ProblemError(f"the constraint on {self.name!r} has no limit: {_EXAMPLE}.")
        if not self.low < self.high:
            raise ProblemError(
                f"the limits on {self.name!r} leave nothing between {self.low!r} and"
                f" {self.high!r}: write limits with room between them."
            )

    def _least_score(self) -> float:
        """Φ⁻¹ of the pass rate."""
        rate = 0.5 if self.passes is None else finite(self.passes)
        if rate is None or not 0 < rate < 1:
            raise ProblemError(
                f"passes of {self.name!r} is {self.passes!r}: write a rate between 0 and 1,"
                " such as 0.95."
            )
        object.__setattr__(self, "passes", rate)
        return NormalDist().inv_cdf(rate) if rate != 0.5 else 0.0

    def __str__(self) -> str:
        if self.binary:
            return self.name if self.passes == 0.5 else f"P({self.name}) >= {self.passes!r}"
        if math.isinf(self.high):
            return f"{self.name} >= {self.low!r}"
        if math.isinf(self.low):
            return f"{self.name} <= {self.high!r}"
        return f"{self.low!r} <= {self.name} <= {self.high!r}"

    def met(self, value: float) -> bool:
        """Whether a measured value respects the limits."""
        if self.passes is not None:  # outcomes are 0 and 1, and averages of them rates
            return value >= self.passes
        return self.low <= value <= self.high

    def merge(self, other: "Constraint") -> "Constraint":
        """Both constraints on the same function at once."""
        if self.binary != other.binary:
            raise ProblemError(
                f"{self.name!r} is a constraint both as pass/fail and with a limit:"
                " write either the bare name or the limit."
            )
        if self.passes is not None and other.passes is not None:
            return self if self.passes >= other.passes else other
        return Constraint(self.name, max(self.low, other.low), min(self.high, other.high))


def read_constraint(text: str | Constraint) -> Constraint:
    """Parse one limit, or a bare name for a pass/fail function."""
    if isinstance(text, Constraint):
        return text
    if not isinstance(text, str):
        raise ProblemError(f"a constraint is {text!r}: {_EXAMPLE}.")
    parts = [part.strip() for part in _OPERATOR.split(text)]
    operands, operators = parts[0::2], parts[1::2]
    for operator in operators:
        _check_operator(operator, text)
    if not operators:
        return Constraint(_name(operands[0], text), binary=True)
    if len(operators) == 1:
        left, right = operands
        if _reads_as_number(left):
            left, right = right, left
            operators = [_flip(operators[0])]
        rate = _RATE.fullmatch(left)
        if rate is not None:
            if operators[0] not in (">=", "≥"):
                raise ProblemError(
                    f"the constraint {text!r} limits a pass rate from above: write 'P(x) >= 0.95'."
                )
            return Constraint(_name(rate[1], text), passes=_number(right, text))
        return _one_sided(_name(left, text), operators[0], _number(right, text))
    if len(operators) == 2:
        if _flip(operators[0]) == operators[1]:
            raise ProblemError(
                f"the constraint {text!r} points in two directions:"
                " write both signs the same way, such as '6.5 <= ph <= 7.5'."
            )
        name = _name(operands[1], text)
        first = _one_sided(name, _flip(operators[0]), _number(operands[0], text))
        return first.merge(_one_sided(name, operators[1], _number(operands[2], text)))
    raise ProblemError(f"the constraint {text!r} has more than two limits: {_EXAMPLE}.")


def _check_operator(operator: str, text: str) -> None:
    if operator in ("<=", ">=", "≤", "≥"):
        return
    if operator in ("==", "="):
        raise ProblemError(
            f"the constraint {text!r} asks for equality, which a measurement never meets:"
            " write an interval such as '1.99 <= x <= 2.01'."
        )
    remedy = "<=" if operator in ("<", "=<") else ">=" if operator in (">", "=>") else "<= or >="
    raise ProblemError(f"the constraint {text!r} uses {operator!r}: write {remedy}.")


def _flip(operator: str) -> str:
    return ">=" if operator in ("<=", "≤") else "<="


def _one_sided(name: str, operator: str, limit: float) -> Constraint:
    if operator in ("<=", "≤"):
        return Constraint(name, high=limit)
    return Constraint(name, low=limit)


def _reads_as_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _number(word: str, text: str) -> float:
    if " and " in f" {word} ":
        raise ProblemError(f"the constraint {text!r} joins limits by 'and': write two entries.")
    if not _reads_as_number(word) or not math.isfinite(float(word)):
        raise ProblemError(
            f"the limit {word!r} in the constraint {text!r} is not a finite number: {_EXAMPLE}."
        )
    return float(word)


def _name(word: str, text: str) -> str:
    if " and " in f" {word} ":
        raise ProblemError(f"the constraint {text!r} joins limits by 'and': write two entries.")
    if not word.isidentifier():
        raise ProblemError(
            f"the constraint {text!r} limits {word!r}, which is not the name of a function:"
            f" {_EXAMPLE}."
        )
    return word
