"""How fast is the surrogate? Fits against BoTorch's, and how every stage grows with the data.

    make peers-setup
    .venv/bin/python benchmarks/model.py

One run, one thing at a time, one thread: Calamint and BoTorch (in `.venv-peers`) take turns on the
same data, the toy problem's three functions at uniform inputs. Written to `results/model.md`.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from calamint import Model
from calamint.model import Data, Surrogate, fit
from calamint.model.likelihood import GaussianLikelihood
from calamint.testbed import toy

HERE = Path(__file__).parent
SOLVED = toy().coupled()
FITTED = (20, 50)
GROWTH = (20, 50, 100, 200, 400, 1000)
REPETITIONS = 9


def inputs_of(count: int, repetition: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    return np.random.default_rng([count, repetition]).random((count, 2))


def data_of(count: int, repetition: int) -> dict[str, Data]:
    inputs = inputs_of(count, repetition)
    unknown = np.full(count, np.nan)
    return {
        name: Data(inputs, SOLVED.functions[name](inputs), unknown)
        for name in SOLVED.problem.functions
    }


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fitted(how: str, data: dict[str, Data], before: Surrogate | None = None) -> Surrogate:
    model = Model(hyperparameters=how, transform="none")  # type: ignore[arg-type]
    start = before and before.hyperparameters()
    return fit(SOLVED.problem, model, data, np.random.default_rng(0), start)


def peer() -> None:
    """Runs in the peers' environment: prints the time of each fit as it is asked for one."""
    import warnings

    import torch

    from peers import fit_models

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for line in sys.stdin:
        count, repetition = json.loads(line)
        inputs = inputs_of(count, repetition)
        columns = [SOLVED.functions[name](inputs) for name in SOLVED.problem.functions]
        print(json.dumps(seconds(lambda: fit_models(inputs, columns))), flush=True)  # noqa: B023


def compare() -> list[str]:
    """Fits of three functions: ours and BoTorch's in turns, medians and ratios."""
    python = HERE.parent / ".venv-peers" / "bin" / "python"
    if not python.exists():
        return ["BoTorch is not installed: run `make peers-setup` for the comparison."]
    process = subprocess.Popen(
        [str(python), __file__, "--peer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def botorch(count: int, repetition: int) -> float:
        process.stdin.write(json.dumps([count, repetition]) + "\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        return float(json.loads(process.stdout.readline()))  # type: ignore[union-attr]

    botorch(20, 99)  # the first fit pays for imports and caches, here and there
    fitted("sampled", data_of(20, 99))
    lines = [
        "| N | BoTorch MAP | MAP | ratio | 10 samples, cold | ratio | 10 samples, warm | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for count in FITTED:
        times: dict[str, list[float]] = {"botorch": [], "map": [], "cold": [], "warm": []}
        for repetition in range(REPETITIONS):
            data = data_of(count, repetition)
            times["botorch"].append(botorch(count, repetition))
            times["map"].append(seconds(lambda: fitted("map", data)))  # noqa: B023
            times["cold"].append(seconds(lambda: fitted("sampled", data)))  # noqa: B023
            fewer = {
                name: Data(d.inputs[:-1], d.values[:-1], d.noise_variance[:-1])
                for name, d in data.items()
            }
            before = fitted("sampled", fewer)
            times["warm"].append(seconds(lambda: fitted("sampled", data, before)))  # noqa: B023
        median = {name: statistics.median(values) for name, values in times.items()}
        cells = [f"{1000 * median['botorch']:.0f} ms"]
        for name in ("map", "cold", "warm"):
            cells += [f"{1000 * median[name]:.0f} ms", f"{median[name] / median['botorch']:.2f}"]
        lines.append(f"| {count} | {' | '.join(cells)} |")
    process.stdin.close()
    process.wait()
    return lines


def growth() -> list[str]:
    """Every stage from N = 20 to 1000, in milliseconds, for three functions unless said."""
    lines = [
        "| N | MAP | 10 samples, warm | condition, M = 10 | predict 1000, M = 10"
        " | gradient at 10, M = 10 | append, one function | paths: draw 10, one function"
        " | paths: 1000 points | peak memory |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    rng = np.random.default_rng(0)
    x = rng.random((1000, 2))
    for count in GROWTH:
        data = data_of(count, 0)
        surrogate = fitted("map", data)
        theta = {
            name: np.repeat(function.posterior.theta, 10, axis=0)
            + 0.05 * rng.standard_normal((10, 5))
            for name, function in surrogate.functions.items()
        }
        likelihoods = {name: _likelihood(data, surrogate, name) for name in surrogate.functions}
        stages = [seconds(lambda: fitted("map", data))]  # noqa: B023
        warm = Surrogate(
            SOLVED.problem,
            {
                name: type(function)(
                    likelihoods[name].posterior(theta[name]),
                    function.transform,
                    function.low,
                    function.high,
                )
                for name, function in surrogate.functions.items()
            },
        )
        stages.append(seconds(lambda: fitted("sampled", data, warm)))  # noqa: B023
        stages.append(seconds(lambda: [likelihoods[n].posterior(theta[n]) for n in theta]))  # noqa: B023
        posteriors = [warm.functions[name].posterior for name in theta]
        stages.append(seconds(lambda: [p.mean_variance(x) for p in posteriors]))  # noqa: B023
        stages.append(seconds(lambda: [p.mean_variance_gradient(x[:10]) for p in posteriors]))  # noqa: B023
        one = posteriors[1]
        value = np.zeros(10)
        stages.append(seconds(lambda: one.append(x[0], value, one.noise)))  # noqa: B023
        stages.append(seconds(lambda: one.paths(np.arange(10), rng)))  # noqa: B023
        paths = one.paths(np.arange(10), rng)
        stages.append(seconds(lambda: paths.values(x)))  # noqa: B023
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cells = " | ".join(f"{1000 * stage:.1f}" for stage in stages)
        lines.append(f"| {count} | {cells} | {peak:.0f} MB |")
        print(lines[-1], flush=True)
    return lines


def _likelihood(data: dict[str, Data], surrogate: Surrogate, name: str) -> GaussianLikelihood:
    function = surrogate.functions[name]
    assert function.kernel is not None
    parameter_index = SOLVED.problem.space.parameter_index
    return GaussianLikelihood(function.kernel, data[name], function.transform, parameter_index)


def main() -> None:
    fits = compare()
    print("\n".join(fits), flush=True)
    grown = growth()
    text = "\n".join(
        [
            "# The surrogate: speed and growth",
            "",
            str(__doc__),
            f"## Fits of three functions, median of {REPETITIONS}, ratios to BoTorch's MAP",
            "",
            *fits,
            "",
            "## Growth, milliseconds",
            "",
            *grown,
            "",
        ]
    )
    (HERE / "results" / "model.md").write_text(text)


if __name__ == "__main__":
    peer() if "--peer" in sys.argv else main()
