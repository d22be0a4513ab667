"""Two tasks on two machines: a network's error is trained for, its speed is only profiled.

    python examples/train_and_profile.py

Training needs the one fast machine; the prediction time does not depend on what was learnt, so an
untrained network is profiled, on any machine, at other inputs than those that are trained. Calamint
chooses both: minimise the error of a network whose predictions take at most a thirtieth of the
largest one's time. (Here both "machines" are this one, one job after the other.)
"""

import math
import time
from itertools import pairwise

import numpy as np

import calamint as cm

LARGEST = {"width": 128, "depth": 3}

PROBLEM = cm.Problem(
    space={
        "learning_rate": cm.Real(1e-3, 1.0, log=True),
        "width": cm.Integer(4, LARGEST["width"], log=True),
        "depth": cm.Integer(1, LARGEST["depth"]),
    },
    minimize="error",
    constraints=["log_time <= -1.5"],
    tasks={
        "train": cm.Task(measures=["error"], runs_on=["fast"], cost=2),
        "profile": cm.Task(measures=["log_time"], runs_on=["spare", "fast"]),
    },
    resources={"fast": 1, "spare": 1},
)


def spirals(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 2) on two spirals, and which one each belongs to (n,)."""
    label = rng.integers(2, size=count)
    radius = np.sqrt(rng.random(count))
    angle = 4 * np.pi * radius + np.pi * label
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return points + 0.02 * rng.standard_normal((count, 2)), label


def network(params: dict[str, float], rng: np.random.Generator) -> list[list[np.ndarray]]:
    sizes = [2, *[int(params["width"])] * int(params["depth"]), 1]
    return [[rng.standard_normal((a, b)) * np.sqrt(2 / a), np.zeros(b)] for a, b in pairwise(sizes)]


def forward(layers: list[list[np.ndarray]], x: np.ndarray) -> list[np.ndarray]:
    outputs = [x]
    for index, (weights, bias) in enumerate(layers):
        x = x @ weights + bias
        if index < len(layers) - 1:
            x = np.maximum(x, 0)
        outputs.append(x)
    return outputs


def train(params: dict[str, float], steps: int = 300) -> dict[str, float]:
    """The share of unseen points that are put on the wrong spiral, after some steps of momentum."""
    rng = np.random.default_rng(1)
    x, label = spirals(300, rng)
    unseen, truth = spirals(1000, rng)
    layers = network(params, rng)
    speed = [[np.zeros_like(part) for part in layer] for layer in layers]
    for _ in range(steps):
        outputs = forward(layers, x)
        probability = 1 / (1 + np.exp(-np.clip(outputs[-1][:, 0], -30, 30)))
        pull = (probability - label)[:, None] / len(x)
        for index in reversed(range(len(layers))):
            weights, _ = layers[index]
            derivatives = outputs[index].T @ pull, pull.sum(0)
            pull = (pull @ weights.T) * (outputs[index] > 0)
            for part in range(2):
                speed[index][part] = (
                    0.9 * speed[index][part] - params["learning_rate"] * derivatives[part]
                )
                layers[index][part] = np.clip(layers[index][part] + speed[index][part], -50, 50)
    return {"error": float(np.mean((forward(layers, unseen)[-1][:, 0] > 0) != truth))}


def seconds(params: dict[str, float]) -> float:
    """The best of several predictions of 2000 points by an untrained network."""
    rng = np.random.default_rng(2)
    layers, x = network(params, rng), rng.standard_normal((2000, 2))
    times = []
    for _ in range(15):
        begin = time.perf_counter()
        forward(layers, x)
        times.append(time.perf_counter() - begin)
    return min(times)


def profile(params: dict[str, float]) -> dict[str, float]:
    """The logarithm of the time, relative to the largest network's: it changes by factors."""
    return {"log_time": math.log10(seconds(params) / seconds(LARGEST))}


def main(jobs: int = 40) -> cm.Recommendation:
    optimizer = cm.Optimizer(PROBLEM, seed=0, rationality="batch")
    tasks = {"train": train, "profile": profile}
    done = 0
    while done < jobs:
        for job in optimizer.ask_all():  # one for each machine
            values = tasks[job.task](job.params)
            optimizer.tell(job, values)
            done += 1
            result = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
            print(f"{job}\n    -> {result}")
    best = optimizer.recommend()
    print(f"\nRecommended: {best}")
    print(f"Trained and profiled there: {train(best.params)}, {profile(best.params)}")
    return best


if __name__ == "__main__":
    main()
