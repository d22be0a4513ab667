"""The user's configuration of the Gaussian-process models."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, final

import numpy as np

from calamint.checks import check_integer, did_you_mean, finite
from calamint.errors import ProblemError
from calamint.model.hyperparameters import AMPLITUDE, LENGTHSCALES, MEAN, NOISE, Prior
from calamint.model.kernels import KERNELS, Kernel
from calamint.model.transforms import OutcomeTransform
from calamint.problem import Problem

# Ranges in which the computations stay finite; a noise variance of zero is allowed.
_ALLOWED_RANGES = (
    ("lengthscale", 1e-4, 1e4),
    ("amplitude", 1e-100, 1e100),
    ("noise_variance", 0.0, 1e200),
)

TRANSFORMS = ("auto", "none", "log", "logit", "asinh")

PerFunction = float | Mapping[str, float]
PerFunctionAndParameter = float | Sequence[float] | Mapping[str, float | Sequence[float]]


@final
@dataclass(frozen=True)
class Model:
    """Gaussian processes, one for each function.

    Attributes:
        kernel: "matern52", "matern32" or "se".
        hyperparameters: "sampled" (M draws from their posterior), "map" (their mode) or "mle"
            (maximum marginal likelihood).
        samples: M, the number of hyper-parameter samples.
        lengthscale: Fixed, in unit-cube units: one number, or one for each parameter.
        amplitude: Fixed, a standard deviation in the function's own units; with it, values are not
            standardised and the prior mean is zero.
        noise_variance: Fixed, a variance in the function's own units; 0 is noise-free, and then
            nothing is measured twice.
        transform: The scale on which a function is modelled: "auto" (chosen by likelihood),
            "none", "log", "logit" or "asinh". A fixed amplitude, or noise above zero,
            implies "none".

    What is not fixed is learnt. A dict gives values for some functions by name.
    """

    kernel: str | Mapping[str, str] = "matern52"
    hyperparameters: Literal["sampled", "map", "mle"] = "sampled"
    samples: int = 10
    lengthscale: PerFunctionAndParameter | None = None
    amplitude: PerFunction | None = None
    noise_variance: PerFunction | None = None
    transform: str | Mapping[str, str] = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, str | Mapping):
            raise ProblemError(f"kernel is {self.kernel!r}: {did_you_mean('', KERNELS)}")
        for name in [self.kernel] if isinstance(self.kernel, str) else self.kernel.values():
            if not isinstance(name, str) or name not in KERNELS:
                raise ProblemError(f"kernel is {name!r}: {did_you_mean(str(name), KERNELS)}")
        if not isinstance(self.transform, str | Mapping):
            raise ProblemError(f"transform is {self.transform!r}: {did_you_mean('', TRANSFORMS)}")
        for name in (
            [self.transform] if isinstance(self.transform, str) else self.transform.values()
        ):
            if not isinstance(name, str) or name not in TRANSFORMS:
                raise ProblemError(f"transform is {name!r}: {did_you_mean(str(name), TRANSFORMS)}")
        allowed = ("sampled", "map", "mle")
        if self.hyperparameters not in allowed:
            raise ProblemError(
                f"hyperparameters is {self.hyperparameters!r}:"
                f" {did_you_mean(str(self.hyperparameters), allowed)}"
            )
        object.__setattr__(self, "samples", check_integer(self.samples, "samples", 1))
        if isinstance(self.lengthscale, np.ndarray):
            object.__setattr__(self, "lengthscale", self.lengthscale.tolist())
        for field, low, high in _ALLOWED_RANGES:
            value = getattr(self, field)
            for entry in value.values() if isinstance(value, Mapping) else [value]:
                several = isinstance(entry, list | tuple) and field == "lengthscale"
                for given in entry if several else [entry]:
                    number = finite(given)
                    if given is not None and (number is None or not low <= number <= high):
                        raise ProblemError(
                            f"{field} is {value!r}: write a number from {low:g} to {high:g}."
                        )
            object.__setattr__(self, field, _to_builtin(value))

    def check(self, problem: Problem) -> None:
        """Raise `ProblemError` for functions that no task measures or a wrong number of
        length-scales."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Mapping):
                for name in value:
                    if name not in problem.measured:
                        raise ProblemError(
                            f"{field.name} has {name!r}, which no task measures:"
                            f" {did_you_mean(str(name), problem.measured)}"
                        )
        for name in problem.binary:
            if isinstance(self.transform, Mapping) and name in self.transform:
                raise ProblemError(f"transform has {name!r}, whose outcomes have no scale.")
        for name in problem.measured:
            lengthscale = _for_function(self.lengthscale, name)
            if isinstance(lengthscale, Sequence) and len(lengthscale) != len(problem.space):
                raise ProblemError(
                    f"lengthscale is {lengthscale!r}: write one number, or one for each of the"
                    f" {len(problem.space)} parameters."
                )

    def kernel_of(self, name: str) -> Kernel:
        """The kernel of a function."""
        return KERNELS[_for_function(self.kernel, name) or "matern52"]  # type: ignore[index]

    def transform_of(self, name: str) -> str:
        """The transform of a function by name; an amplitude or noise in its units implies none."""
        if self.amplitude_is_fixed(name) or _for_function(self.noise_variance, name):
            return "none"
        return str(_for_function(self.transform, name) or "auto")

    def amplitude_is_fixed(self, name: str) -> bool:
        """Whether values are only signed, and not standardised."""
        return _for_function(self.amplitude, name) is not None

    def noise_is_fixed(self, name: str) -> bool:
        """Whether the user said how noisy a function is."""
        return _for_function(self.noise_variance, name) is not None

    def prior_of(
        self, name: str, parameters: int, transform: OutcomeTransform, binary: bool = False
    ) -> Prior:
        """The prior over hyper-parameters, with the user's fixed values.

        The latent function of a binary constraint has no noise.
        """
        fixed = np.full(parameters + 3, np.nan)  # length-scales, amplitude, noise, mean
        lengthscale = _for_function(self.lengthscale, name)
        amplitude = _for_function(self.amplitude, name)
        noise = _for_function(self.noise_variance, name)
        if lengthscale is not None:
            fixed[LENGTHSCALES] = np.log(np.asarray(lengthscale, dtype=float))
        if amplitude is not None:
            fixed[AMPLITUDE] = math.log(amplitude)  # type: ignore[arg-type]
            fixed[MEAN] = 0.0
        if noise is not None:
            scaled = float(transform.variance_to_model(np.zeros(1), np.array([noise]))[0])
            fixed[NOISE] = math.log(scaled) if scaled > 0 else -math.inf
        if binary:
            fixed[NOISE] = -math.inf
            return Prior.binary(parameters, fixed)
        return Prior.standard(parameters, fixed)


def _to_builtin(value: object) -> object:
    """Convert NumPy scalars to Python numbers, for JSON."""
    if isinstance(value, Mapping):
        return {name: _to_builtin(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_to_builtin(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _for_function(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else value
