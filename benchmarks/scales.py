"""Which scale predicts best? Held-out values of real and synthetic functions, by transform.

    make peers-setup
    .venv-peers/bin/python benchmarks/scales.py
    .venv-peers/bin/python benchmarks/scales.py --summarise

Every function is evaluated at 90 inputs, uniform in the unit cube. Models are trained on 15, 30 and
60 of them, four times each, and score the rest: the log density of a value in its own units, minus
that of `transform="none"`, in nats for each value, at most 10 either way.

"sinh–arcsinh" is the alternative that learns a continuous family jointly with the hyper-parameters:
T(z) = sinh(b·asinh(z) − a) of standardised values, with normal priors on a and log b (standard
deviation ½). A grid of (a, b) is weighted by the marginal likelihood at its best hyper-parameters,
ten pairs are drawn in proportion, and one hyper-parameter sample is drawn for each.
"""

import argparse
import itertools
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import logsumexp

import rows
from calamint import Model
from calamint.arrays import Array
from calamint.model import Data, fit
from calamint.model.likelihood import GaussianLikelihood
from calamint.model.map_estimate import most_probable, refined
from calamint.model.slice_sampling import draw_samples
from calamint.model.transforms import OutcomeTransform, standardise
from calamint.problem import Problem
from calamint.testbed import CLASSIC
from real_tasks import TASKS

RESULTS = Path(__file__).parent / "results"
POINTS, TRAINED, SPLITS = 90, (15, 30, 60), 4
REAL = ("network", "boosting", "regression")
SYNTHETIC = ("toy", "goldstein_price", "rosenbrock4", "welded_beam", "hartmann6")
NAMED = ("auto", "log", "asinh")
METHODS = (*NAMED, "sinh–arcsinh")
SKEWS = np.linspace(-1.5, 1.5, 7)
TAILS = np.exp(np.linspace(-1.0, 0.7, 6))


@dataclass(frozen=True)
class Row:
    """The mean log density of held-out values, minus that of `transform="none"`."""

    source: str
    function: str
    trained: int
    split: int
    method: str
    nats: float

    @property
    def key(self) -> tuple[str, str, int, int, str]:
        return self.source, self.function, self.trained, self.split, self.method


@dataclass(frozen=True)
class SinhArcsinh:
    """sinh(b·asinh(z) − a) of standardised values z, in the form that a likelihood needs."""

    base: OutcomeTransform
    skew: float
    tail: float

    def to_model(self, values: Array) -> Array:
        return np.sinh(self.tail * np.arcsinh(self.base.to_model(values)) - self.skew)

    def log_jacobian(self, values: Array) -> Array:
        z = self.base.to_model(values)
        inner = np.log(np.cosh(self.tail * np.arcsinh(z) - self.skew))
        return inner + np.log(self.tail) - 0.5 * np.log1p(z**2) - np.log(abs(self.base.scale))

    def variance_to_model(self, values: Array, variance: Array) -> Array:  # noqa: ARG002
        return variance  # no noise is known


def log_density(posterior: Any, transform: Any, data: Data) -> Array:
    """(M, n) of held-out values in their own units, under each hyper-parameter sample."""
    mean, variance = posterior.mean_variance(data.inputs)
    variance = variance + posterior.noise[:, None]
    z = transform.to_model(data.values) - mean
    return transform.log_jacobian(data.values) - 0.5 * (
        z**2 / variance + np.log(2 * np.pi * variance)
    )


def named(problem: Problem, name: str, how: str, train: Data, test: Data) -> Array:
    """(n,) of one of Calamint's transforms."""
    data = {each: Data.empty(problem.space.dimension) for each in problem.measured}
    model = Model(transform=how)
    function = fit(problem, model, {**data, name: train}, np.random.default_rng(0)).functions[name]
    logs = log_density(function.posterior, function.transform, test)
    mixture: Array = logsumexp(logs, axis=0) - np.log(len(logs))
    return mixture


def jointly(problem: Problem, name: str, train: Data, test: Data) -> Array:
    """(n,) of the sinh–arcsinh family."""
    model, rng = Model(transform="none"), np.random.default_rng(0)
    kernel, index = model.kernel_of(name), problem.space.parameter_index
    base = standardise(train.values)
    prior = model.prior_of(name, len(problem.space), base)

    def likelihood(pair: tuple[float, float]) -> tuple[GaussianLikelihood, float]:
        transform = SinhArcsinh(base, *pair)
        # Standardised again, so that the priors of the hyper-parameters fit.
        bent = transform.to_model(train.values)
        again = standardise(bent)
        data = Data(train.inputs, bent, train.noise_variance)
        jacobian = transform.log_jacobian(train.values).sum() + again.log_jacobian(bent).sum()
        return GaussianLikelihood(kernel, data, again, index), float(jacobian)

    pairs = list(itertools.product(SKEWS, TAILS))
    start = most_probable(likelihood((0.0, 1.0))[0], prior, rng)
    scores = []
    for skew, tail in pairs:
        found, jacobian = likelihood((skew, tail))
        beliefs = -0.5 * (skew / 0.5) ** 2 - 0.5 * (np.log(tail) / 0.5) ** 2
        scores.append(refined(found, prior, start, 20)[0] + jacobian + beliefs)
    weights = np.exp(np.array(scores) - logsumexp(scores))
    logs = []
    for drawn in rng.choice(len(pairs), 10, p=weights / weights.sum()):
        found, _ = likelihood(pairs[drawn])
        theta = draw_samples(found, prior, 10, rng)[:1]
        bend = SinhArcsinh(base, *pairs[drawn])
        bent = Data(test.inputs, bend.to_model(test.values), test.noise_variance)
        held_out = log_density(found.posterior(theta), found.transform, bent)[0]
        logs.append(held_out + bend.log_jacobian(test.values))
    mixture: Array = logsumexp(logs, axis=0) - np.log(len(logs))
    return mixture


@cache
def evaluated(source: str) -> tuple[Problem, dict[str, Data]]:
    """A problem, and its functions at the same inputs."""
    if source in TASKS:
        problem, measure = TASKS[source].problem, TASKS[source].measure
    else:
        solved = CLASSIC[source]().coupled()
        problem = solved.problem

        def measure(params: Any, seed: int) -> dict[str, float]:  # noqa: ARG001
            return solved.evaluate(params)

    points = np.random.default_rng(7).random((POINTS, problem.space.dimension))
    inputs = [problem.space.decode(point) for point in points]
    found = [measure(params, seed) for seed, params in enumerate(inputs)]
    encoded = np.array([problem.space.encode(params) for params in inputs])
    missing = np.full(POINTS, np.nan)
    return problem, {
        name: Data(encoded, np.array([values[name] for values in found]), missing)
        for name in problem.measured
    }


def compare(source: str) -> list[Row]:
    problem, functions = evaluated(source)
    found = []
    for name, trained, split in itertools.product(functions, TRAINED, range(SPLITS)):
        order = np.random.default_rng(split).permutation(POINTS)
        train, test = (
            functions[name].take(chosen) for chosen in (order[:trained], order[trained:])
        )
        plain = named(problem, name, "none", train, test)
        for method in METHODS:
            logs = (
                jointly(problem, name, train, test)
                if method not in NAMED
                else named(problem, name, method, train, test)
            )
            nats = float(np.clip(logs - plain, -10, 10).mean())
            found.append(Row(source, name, trained, split, method, round(nats, 3)))
    return found


def table(found: list[Row]) -> str:
    lines = [f"| source | function | {' | '.join(METHODS)} |", f"|---|---|{'---|' * len(METHODS)}"]
    functions = dict.fromkeys((row.source, row.function) for row in found)
    for source, function in functions:
        means = [
            np.mean(
                [r.nats for r in found if (r.source, r.function, r.method) == (source, function, m)]
            )
            for m in METHODS
        ]
        lines.append(f"| {source} | {function} | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    for trained in TRAINED:
        means = [
            np.mean([r.nats for r in found if (r.trained, r.method) == (trained, m)])
            for m in METHODS
        ]
        lines.append(f"| all | {trained} values | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Held-out densities by transform.")
    parser.add_argument("--processes", type=int, help="how many at once; by default every core")
    parser.add_argument("--summarise", action="store_true", help="run nothing")
    options = parser.parse_args()
    path = RESULTS / "scales.csv"
    done = {row.source for row in rows.read(path, Row)}
    jobs = {source: (compare, (source,)) for source in (*REAL, *SYNTHETIC) if source not in done}
    if jobs and not options.summarise:
        rows.gather(jobs, path, options.processes)
    text = table(rows.read(path, Row))
    print(text)
    (RESULTS / "scales.md").write_text(f"# Scales\n\n{__doc__}\n{text}\n")


if __name__ == "__main__":
    main()
