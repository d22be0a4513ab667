"""Real tuning tasks on data that scikit-learn ships, each under constraints that are measured.

Runs in `.venv-peers` (`make peers-setup`), where scikit-learn and all contestants are.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from calamint.problem import Integer, Parameter, Problem, Real, Task

Measure = Callable[[Mapping[str, Any], int], dict[str, float]]


@dataclass(frozen=True)
class RealTask:
    """A tuning task.

    Attributes:
        problem: With one task that measures everything, or several.
        measure: Parameters and a seed -> every function; the seed matters only if it is `noisy`.
        evaluations: The budget in joint evaluations.
        noisy: Whether evaluations differ from run to run.
        quiet: Whether it must run alone, because it takes times.
    """

    name: str
    problem: Problem
    measure: Measure
    evaluations: int
    noisy: bool = False
    quiet: bool = False

    def truth(self, params: Mapping[str, Any]) -> dict[str, float]:
        """What retraining gives: once, or on average over 20 runs; times on average over nine."""
        count = 20 if self.noisy else 9 if self.quiet else 1
        runs = [self.measure(params, 10_000 + run) for run in range(count)]
        return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}


@cache
def digits() -> tuple[np.ndarray[Any, Any], ...]:
    """Training and validation images and labels; a third is held out."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    return tuple(train_test_split(x / 16.0, y, test_size=0.33, random_state=0, stratify=y))


def _shifted(images: np.ndarray[Any, Any], copies: int) -> list[np.ndarray[Any, Any]]:
    """The images, and copies moved by a pixel to the right, left, down and up."""
    square = images.reshape(-1, 8, 8)
    moves = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)][:copies]
    return [np.roll(square, move, (1, 2)).reshape(len(images), -1) for move in moves]


def _network(params: Mapping[str, Any]) -> Any:
    from sklearn.neural_network import MLPClassifier

    warnings.simplefilter("ignore")
    train_x, _, train_y, _ = digits()
    model = MLPClassifier(
        hidden_layer_sizes=(params["width"],) * params["depth"],
        learning_rate_init=params["learning_rate"],
        alpha=params["decay"],
        batch_size=params["batch"],
        max_iter=params["epochs"],
        random_state=0,
    )
    return model.fit(train_x, train_y)


def _network_error(model: Any, copies: int) -> float:
    _, test_x, _, test_y = digits()
    votes = sum(model.predict_proba(moved) for moved in _shifted(test_x, copies))
    return float(np.mean(votes.argmax(1) != test_y))


def network(params: Mapping[str, Any], seed: int) -> dict[str, float]:  # noqa: ARG001
    model = _network(params)
    weights = sum(layer.size for layer in model.coefs_)
    biases = sum(layer.size for layer in model.intercepts_)
    return {
        "error": 100 * _network_error(model, params["copies"]),
        "parameters": float(weights + biases),
        "multiply_adds": float(weights * params["copies"]),
    }


NETWORK: dict[str, Parameter] = {
    "width": Integer(4, 256, log=True),
    "depth": Integer(1, 3),
    "learning_rate": Real(1e-4, 1e-1, log=True),
    "decay": Real(1e-6, 1e-1, log=True),
    "batch": Integer(16, 256, log=True),
    "epochs": Integer(2, 12),
    "copies": Integer(1, 5),
}


def latency(params: Mapping[str, Any], seed: int) -> dict[str, float]:  # noqa: ARG001
    """The same network, with the time that it takes to classify 100 images, in milliseconds."""
    model = _network(params)
    _, test_x, _, _ = digits()
    moved, times = _shifted(test_x[:100], params["copies"]), []
    for _ in range(9):
        begin = time.perf_counter()
        for images in moved:
            model.predict_proba(images)
        times.append(time.perf_counter() - begin)
    return {
        "error": 100 * _network_error(model, params["copies"]),
        "latency_ms": 1000 * float(np.median(times)),
    }


def boosting(params: Mapping[str, Any], seed: int) -> dict[str, float]:  # noqa: ARG001
    """Boosted trees on the diabetes data: cross-validated error, and the number of leaves."""
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_predict

    x, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(
        learning_rate=params["learning_rate"],
        n_estimators=params["trees"],
        max_leaf_nodes=params["leaves"],
        min_samples_leaf=params["least"],
        subsample=params["share"],
        max_features=params["features"],
        random_state=0,
    )
    found = cross_val_predict(model, x, y, cv=KFold(3, shuffle=True, random_state=0))
    model.fit(x, y)
    leaves = sum(tree.get_n_leaves() for tree in model.estimators_.ravel())
    return {"rmse": float(np.sqrt(np.mean((found - y) ** 2))), "size": float(leaves)}


def regression(params: Mapping[str, Any], seed: int) -> dict[str, float]:
    """A small network on the diabetes data, split and initialised anew in every run."""
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    warnings.simplefilter("ignore")
    x, y = load_diabetes(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.5, random_state=seed)
    scaler = StandardScaler().fit(train_x)
    model = MLPRegressor(
        hidden_layer_sizes=(params["width"],),
        learning_rate_init=params["learning_rate"],
        alpha=params["decay"],
        batch_size=params["batch"],
        max_iter=params["epochs"],
        random_state=seed,
    ).fit(scaler.transform(train_x), (train_y - 150) / 75)

    def rmse(inputs: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> float:
        found = 150 + 75 * model.predict(scaler.transform(inputs))
        return float(np.sqrt(np.mean((found - values) ** 2)))

    held_out = rmse(test_x, test_y)
    return {"rmse": held_out, "overfit": held_out / max(rmse(train_x, train_y), 1e-9)}


REGRESSION: dict[str, Parameter] = {
    "width": Integer(2, 128, log=True),
    "learning_rate": Real(1e-4, 1e-1, log=True),
    "decay": Real(1e-4, 10.0, log=True),
    "batch": Integer(8, 128, log=True),
    "epochs": Integer(5, 60, log=True),
}
BOOSTING: dict[str, Parameter] = {
    "learning_rate": Real(0.005, 0.5, log=True),
    "trees": Integer(5, 150, log=True),
    "leaves": Integer(2, 32, log=True),
    "least": Integer(1, 60, log=True),
    "share": Real(0.3, 1.0),
    "features": Real(0.1, 1.0),
}

TASKS = {
    task.name: task
    for task in (
        RealTask(
            "network",
            Problem(NETWORK, "error", constraints=["parameters <= 2000", "multiply_adds <= 4000"]),
            network,
            30,
        ),
        RealTask(
            "latency",
            Problem(
                NETWORK,
                "error",
                constraints=["latency_ms <= 0.3"],
                tasks={
                    "train": Task("error", ["trainer"]),
                    "check": Task("latency_ms", ["device"]),
                },
                resources={"trainer": 1, "device": 1},
            ),
            latency,
            30,
            quiet=True,
        ),
        RealTask("boosting", Problem(BOOSTING, "rmse", constraints=["size <= 150"]), boosting, 30),
        RealTask(
            "regression",
            Problem(REGRESSION, "rmse", constraints=["overfit <= 1.1"]),
            regression,
            30,
            noisy=True,
        ),
    )
}
