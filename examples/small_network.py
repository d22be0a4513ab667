"""The best network of a known size: what it costs to run is a formula, only its error is measured.

    python examples/small_network.py

A network reads digits of a seven-segment display that flickers. It has to run on a chip that
manages 2,000 multiplications for each digit. How many a network needs is known (`known=`), so
Calamint never measures it.
"""

from itertools import pairwise

import numpy as np

import calamint as cm

# Which of the seven segments each digit lights.
LIT = (0x77, 0x12, 0x5D, 0x5B, 0x3A, 0x6B, 0x6F, 0x52, 0x7F, 0x7B)
SEGMENTS = np.array([[digit >> bit & 1 for bit in range(7)] for digit in LIT], dtype=float)


def multiplications(params: dict[str, float]) -> float:
    """Of one prediction: a weight is used once."""
    first, second = params["first"], params["second"]
    return 21 * first + first * second + second * 10


PROBLEM = cm.Problem(
    space={
        "learning_rate": cm.Real(1e-3, 1.0, log=True),
        "momentum": cm.Real(0.0, 0.98),
        "weight_decay": cm.Real(1e-6, 1e-1, log=True),
        "first": cm.Integer(4, 128, log=True),
        "second": cm.Integer(4, 128, log=True),
    },
    minimize="error",
    constraints=["multiplications <= 2000"],
    known={"multiplications": multiplications},
)


def displays(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three flickering readings (n, 21) of digits (n,): segments fail, and neighbours shine in."""
    digits = rng.integers(10, size=count)
    lit = np.repeat(SEGMENTS[digits][:, None], 3, axis=1)
    seen = np.where(rng.random(lit.shape) < 0.12, 1 - lit, lit) + 0.5 * rng.standard_normal(
        lit.shape
    )
    return seen.reshape(count, 21), digits


def train(params: dict[str, float], steps: int = 400) -> dict[str, float]:
    """The share of unseen digits that are misread, in percent."""
    rng = np.random.default_rng(1)
    inputs, digits = displays(600, rng)
    unseen, truth = displays(2000, rng)
    widths = [21, int(params["first"]), int(params["second"]), 10]
    weights = [rng.standard_normal((a, b)) * np.sqrt(2 / a) for a, b in pairwise(widths)]
    speeds = [np.zeros_like(each) for each in weights]
    for _ in range(steps):
        chosen = rng.integers(len(inputs), size=64)
        outputs = layers(inputs[chosen], weights)
        error = np.exp(outputs[-1] - outputs[-1].max(1, keepdims=True))
        error /= error.sum(1, keepdims=True)
        error[np.arange(64), digits[chosen]] -= 1
        for index in reversed(range(3)):
            slope = outputs[index].T @ error / 64 + params["weight_decay"] * weights[index]
            error = (error @ weights[index].T) * (outputs[index] > 0)
            speeds[index] = params["momentum"] * speeds[index] - params["learning_rate"] * slope
            weights[index] = np.clip(weights[index] + speeds[index], -30, 30)
    read = layers(unseen, weights)[-1].argmax(1)
    return {"error": float(100 * np.mean(read != truth))}


def layers(inputs: np.ndarray, weights: list[np.ndarray]) -> list[np.ndarray]:
    outputs = [inputs]
    for index, each in enumerate(weights):
        raw = outputs[-1] @ each
        outputs.append(np.maximum(raw, 0) if index < len(weights) - 1 else raw)
    return outputs


def main(trainings: int = 30) -> cm.Recommendation:
    optimizer = cm.Optimizer(PROBLEM, seed=0)
    for _ in range(trainings):
        job = optimizer.ask()
        assert job is not None
        values = train(job.params)
        optimizer.tell(job, values)
        print(f"{job}\n    -> {values['error']:.1f} % misread")
    best = optimizer.recommend()
    print(f"\nRecommended: {best}")
    print(f"It needs {multiplications(best.params):.0f} multiplications for a digit.")
    return best


if __name__ == "__main__":
    main()
