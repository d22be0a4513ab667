"""The gains of many inputs: in blocks small enough to be worked on in the processor's cache."""

from collections.abc import Iterator
from typing import final

import numpy as np

from calamint.acquire.pesc.backward import backward
from calamint.acquire.pesc.conditioning import Conditioned
from calamint.acquire.pesc.forward import forward
from calamint.arrays import Array
from calamint.threads import parallel_map

# This many solutions say well enough which of many inputs deserve to be scored by all.
_SCREENING = 5
# Covariances with the points worked on at once: with fewer, calls cost more than numbers; with many
# more, numbers leave the cache.
_AT_ONCE = 100_000


@final
class Gains:
    """Nats from measuring each function, at any input."""

    def __init__(self, conditioned: Conditioned) -> None:
        self.conditioned = conditioned
        self._parts: dict[int, list[Conditioned]] = {}  # by how many samples each has

    def values(self, x: Array) -> Array:
        """(n, D) -> (n, 1 + K) nats from measuring each function; zero for known ones."""
        gains = np.zeros((len(x), len(self.conditioned.functions)))
        pieces = list(self._pieces(len(x)))
        found = parallel_map(lambda piece: forward(piece[1], x[piece[0]], 2).gains, pieces)
        for (rows, _), share in zip(pieces, found, strict=True):
            gains[rows] += share
        return gains

    def screening_values(self, x: Array) -> Array:
        """(n, D) -> (n, 1 + K) the share of a few solutions in the gains."""
        c = self.conditioned
        samples = min(_SCREENING, len(c.noise))
        # Of the groups of as many samples, one whose solutions count; of it, those that count most.
        weight = np.bincount(c.rows, c.weights, len(c.noise))
        groups = range(0, len(c.noise) - samples + 1, samples)
        start = max(groups, key=lambda first: weight[first : first + samples].sum())
        return Gains(c.subset(slice(start, start + samples), most=_SCREENING)).values(x)

    def values_gradient(self, x: Array, wanted: Array) -> tuple[Array, Array]:
        """(n, D) -> gains (n, 1 + K) and the gradient (n, D) of Σ_i wanted_i gain_i.

        wanted (n, 1 + K) or (1 + K,)
        """
        shape = (len(x), len(self.conditioned.functions))
        wanted = np.broadcast_to(wanted, shape)
        gains, gradient = np.zeros(shape), np.zeros(x.shape)

        def both(piece: tuple[slice, Conditioned]) -> tuple[Array, Array]:
            rows, part = piece
            state = forward(part, x[rows], 4)
            return state.gains, backward(part, x[rows], state, wanted[rows])

        pieces = list(self._pieces(len(x)))
        # Where f(x) and f(x*) are the same but for rounding, derivatives are beyond any number.
        with np.errstate(over="ignore", invalid="ignore"):
            for (rows, _), found in zip(pieces, parallel_map(both, pieces), strict=True):
                gains[rows] += found[0]
                gradient[rows] += found[1]
        return gains, np.nan_to_num(gradient, posinf=1e12, neginf=-1e12)

    def _pieces(self, count: int) -> Iterator[tuple[slice, Conditioned]]:
        """Blocks of inputs under groups of samples."""
        each = max(function.size for function in self.conditioned.functions)
        samples = len(self.conditioned.noise)
        group = min(samples, max(1, _AT_ONCE // (each * max(count, 1))))
        if group not in self._parts:
            self._parts[group] = [
                self.conditioned.subset(slice(start, min(start + group, samples)))
                for start in range(0, samples, group)
            ]
        size = max(64, _AT_ONCE // (each * group))
        for start in range(0, count, size):
            for part in self._parts[group]:
                yield slice(start, start + size), part
