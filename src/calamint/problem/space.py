"""All parameters together, and their encoding into the unit cube on which the models work."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, final

import numpy as np

from calamint.arrays import Array, Index, Mask
from calamint.checks import check_name, did_you_mean
from calamint.errors import ProblemError
from calamint.problem.parameters import Choice, Integer, Parameter, Real

Params = dict[str, Any]


@final
class Space:
    """Named parameters, and their encoding as points of the cube [0, 1]^dimension.

    `dimension` counts columns (a choice has one per option), `len(space)` counts parameters.
    """

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise ProblemError(
                f"space is {parameters!r}: write at least one parameter,"
                " such as {'width': cm.Integer(16, 1024)}."
            )
        for name, parameter in parameters.items():
            check_name(name, "a parameter in space")
            if not isinstance(parameter, Real | Integer | Choice):
                raise ProblemError(
                    f"space[{name!r}] is {parameter!r}:"
                    " write cm.Real(low, high), cm.Integer(low, high) or cm.Choice(...)."
                )
        self.parameters: dict[str, Parameter] = dict(parameters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and list(self.parameters.items()) == list(
            other.parameters.items()
        )

    def __hash__(self) -> int:
        return hash(tuple(self.parameters.items()))

    def __len__(self) -> int:
        return len(self.parameters)

    def __repr__(self) -> str:
        return f"Space({self.parameters!r})"

    @cached_property
    def columns(self) -> dict[str, slice]:
        """The columns of the cube that each parameter occupies."""
        columns, start = {}, 0
        for name, parameter in self.parameters.items():
            columns[name] = slice(start, start + parameter.width)
            start += parameter.width
        return columns

    @cached_property
    def dimension(self) -> int:
        return sum(parameter.width for parameter in self.parameters.values())

    @cached_property
    def parameter_index(self) -> Index:
        """(dimension,) which parameter each column belongs to, by order of declaration."""
        widths = [parameter.width for parameter in self.parameters.values()]
        return np.repeat(np.arange(len(widths)), widths)

    @cached_property
    def continuous(self) -> Mask:
        """(dimension,) True for the columns of real parameters."""
        smooth = [isinstance(parameter, Real) for parameter in self.parameters.values()]
        return np.repeat(smooth, [parameter.width for parameter in self.parameters.values()])

    def validate(self, params: Mapping[str, Any], outside: bool = False) -> Params:
        """Validate a dict of values: returns it with canonical types, in order of declaration.

        Args:
            params: A value for every parameter.
            outside: Accept values out of bounds, and former options: they can be learnt from.
        """
        if not isinstance(params, Mapping):
            raise ProblemError(
                f"params is {params!r}: write a value for each of"
                f" {', '.join(map(repr, self.parameters))}, as a dict."
            )
        for name in params:
            if name not in self.parameters:
                raise ProblemError(
                    f"params has {name!r}, which is not in the space:"
                    f" {did_you_mean(str(name), self.parameters)}"
                )
        for name in self.parameters:
            if name not in params:
                raise ProblemError(f"params has no {name!r}: write a value for it.")
        return {
            name: parameter.validate(params[name], name, outside)
            for name, parameter in self.parameters.items()
        }

    def encode(self, params: Mapping[str, Any], outside: bool = False) -> Array:
        """(dimension,) the point of the cube, or `outside` of it, that stands for these values."""
        accepted = self.validate(params, outside)
        return np.array(
            [
                coordinate
                for name, parameter in self.parameters.items()
                for coordinate in parameter.encode(accepted[name])
            ]
        )

    def encode_all(self, points: Iterable[Mapping[str, Any]]) -> Array:
        """(N, dimension)"""
        return np.array([self.encode(point) for point in points]).reshape(-1, self.dimension)

    def decode(self, point: Array) -> Params:
        """Decode a point of the cube to parameter values; every point of the cube is valid."""
        array = np.asarray(point, dtype=float)
        if array.shape != (self.dimension,):
            raise ProblemError(
                f"a point of the cube has shape {array.shape}: write {self.dimension} coordinates."
            )
        if not np.all((array >= 0.0) & (array <= 1.0)):
            raise ProblemError(
                f"a point of the cube is {array.tolist()}: write coordinates from 0 to 1."
            )
        coordinates = array.tolist()
        return {
            name: parameter.decode(coordinates[self.columns[name]])
            for name, parameter in self.parameters.items()
        }

    def contains(self, points: Array) -> Mask:
        """(n, dimension) -> (n,) whether these are points of the cube, of no former option."""
        return np.all((points >= 0.0) & (points <= self._highest), axis=-1)

    @cached_property
    def _highest(self) -> Array:
        highest = np.ones(self.dimension)
        for name, parameter in self.parameters.items():
            if isinstance(parameter, Choice):
                highest[self.columns[name]][len(parameter.options) :] = 0.0
        return highest

    def snap(self, points: Array) -> Array:
        """(..., dimension) round each point to the encoding of the values that it decodes to."""
        snapped = np.array(points, dtype=float)
        for name, parameter in self.parameters.items():
            if not isinstance(parameter, Real):
                columns = self.columns[name]
                snapped[..., columns] = parameter.snap(snapped[..., columns])
        return snapped
