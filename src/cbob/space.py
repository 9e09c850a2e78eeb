"""What may be tried: named parameters, and the unit cube that a model sees instead of their values.

A *row* is a point of the cube, the columns of the parameters side by side. It is *snapped* if a trial can
have it: each `Int` in the middle of its interval, each `Categorical` one-hot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import SpaceError, listed, shown
from .parameters import Array, Categorical, Float, Int, Parameter, Value

__all__ = ["Categorical", "Float", "Int", "Parameter", "Space", "parameter_from_dict"]

KINDS: dict[str, type[Parameter]] = {"float": Float, "int": Int, "categorical": Categorical}


def parameter_from_dict(record: Mapping[str, Any], name: str) -> Parameter:
    """The parameter that `to_dict` or a person wrote, as {"type": "int", "low": 1, "high": 15}."""
    try:
        options = dict(record)
        return KINDS[options.pop("type")](**options)
    except SpaceError as error:
        raise SpaceError(f"parameter {name!r}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        forms = '{"type": "int" or "float", "low": 1, "high": 9} or {"type": "categorical", "choices": [...]}'
        raise SpaceError(f"parameter {name!r} must be written {forms}, not {record!r}") from error


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Space:
    """Named parameters in a fixed order, and the unit cube they span. Equal by value and order."""

    parameters: Mapping[str, Parameter]  # read-only
    names: tuple[str, ...]
    width: int  # columns of the cube
    groups: NDArray[np.intp]  # (width,): the index of the parameter that each column belongs to
    continuous: NDArray[np.bool_]  # (width,): columns that a gradient may move

    def __init__(self, parameters: Mapping[str, Parameter] | Space) -> None:
        given = parameters.parameters if isinstance(parameters, Space) else parameters
        if not isinstance(given, Mapping) or not given:
            raise SpaceError(f"a Space needs at least one parameter, {{name: parameter}}, not {shown(given)}")
        for name, parameter in given.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"the name of a parameter must be a non-empty str, not {shown(name)}")
            if not isinstance(parameter, Parameter):
                raise SpaceError(f"{name!r} must be a Float, an Int or a Categorical, not {shown(parameter)}")
        columns = [parameter.columns for parameter in given.values()]
        groups = np.repeat(np.arange(len(columns)), columns)
        continuous = np.repeat([parameter.continuous for parameter in given.values()], columns)
        groups.flags.writeable = continuous.flags.writeable = False
        vars(self).update(  # frozen from here on
            parameters=MappingProxyType(dict(given)),
            names=tuple(given),
            width=sum(columns),
            groups=groups,
            continuous=continuous,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return list(self.parameters.items()) == list(other.parameters.items())

    def __hash__(self) -> int:
        return hash(tuple(self.parameters.items()))

    def __repr__(self) -> str:
        return f"Space({dict(self.parameters)!r})"

    def __reduce__(self) -> tuple[type[Space], tuple[dict[str, Parameter]]]:
        return Space, (dict(self.parameters),)  # a mapping proxy cannot be pickled

    @property
    def size(self) -> int | None:
        """The number of distinct points; None for a continuum."""
        size = 1
        for parameter in self.parameters.values():
            if parameter.levels is None:
                return None
            size *= parameter.levels
        return size

    def check(self, params: Mapping[str, object]) -> dict[str, Value]:
        """The same point as plain Python values in the order of the space, or a SpaceError."""
        if not isinstance(params, Mapping):
            raise SpaceError(f"params must map names to values, not be {shown(params)}")
        if unknown := [name for name in params if name not in self.parameters]:
            raise SpaceError(f"unknown parameter {listed(unknown)}; this space has {listed(self.names)}")
        if missing := [name for name in self.names if name not in params]:
            raise SpaceError(f"params lack {listed(missing)}; this space has {listed(self.names)}")
        return {name: one.check(params[name], f"parameter {name!r}") for name, one in self.parameters.items()}

    def encode(self, params: Mapping[str, object]) -> Array:
        """The (width,) row of a point, which is checked."""
        values = zip(self.parameters.values(), self.check(params).values(), strict=True)
        return np.array([cell for parameter, value in values for cell in parameter.encode(value)])

    def decode(self, row: ArrayLike) -> dict[str, Value]:
        """The point nearest to a (width,) row, as plain Python values inside the bounds."""
        (cells,) = self._rows(np.asarray(row)[None])
        return {name: parameter.decode(cells[own]) for name, parameter, own in self._blocks()}

    def snap(self, rows: ArrayLike) -> Array:
        """Of each (q, width) row the nearest that a trial can have."""
        cells = self._rows(rows)
        return np.hstack([parameter.snap(cells[:, own]) for _, parameter, own in self._blocks()])

    def spread(self, cube: ArrayLike) -> Array:
        """The snapped (q, width) rows of (q, n_parameters) design points: one number from [0, 1] each."""
        u = self._rows(cube, len(self.names))
        return self.snap(np.hstack([p.spread(u[:, i]) for i, p in enumerate(self.parameters.values())]))

    def sobol(self, n: int, *, seed: int, skip: int = 0) -> Array:
        """The snapped (n, width) rows skip .. skip + n - 1 of the scrambled Sobol sequence of `seed`."""
        from scipy.stats import qmc  # here, because it takes longer to import than all of cbob

        sequence = qmc.Sobol(len(self.names), scramble=True, seed=np.random.default_rng(seed))
        whole = sequence.random_base2(max(skip + n - 1, 0).bit_length())  # SciPy warns of any other number
        return self.spread(whole[skip : skip + n])

    def moves(self, row: ArrayLike) -> Array:
        """The (k, width) rows that differ from a row in one discrete parameter.

        It takes each other choice or value, or, where an `Int` has many, those 1, 2, 4, ... away.
        """
        (cells,) = self._rows(np.asarray(row)[None])
        found = [np.empty((0, self.width))]
        for _, parameter, own in self._blocks():
            blocks = parameter.moves(cells[own])
            rows = np.tile(cells, (len(blocks), 1))
            rows[:, own] = blocks
            found.append(rows)
        return np.vstack(found)

    def enumerate(self, limit: int) -> Array | None:
        """The (size, width) rows of all points, the last parameter varying fastest; None beyond `limit`."""
        if self.size is None or self.size > limit:
            return None
        blocks, period = [], self.size
        for parameter in self.parameters.values():
            grid = parameter.grid()
            period //= len(grid)
            blocks.append(grid[np.arange(self.size) // period % len(grid)])
        return np.hstack(blocks)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; a list, so that the order survives a writer that sorts its keys."""
        return {"parameters": [{"name": name, **one.to_dict()} for name, one in self.parameters.items()]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Space:
        """The space that `to_dict` wrote."""
        try:
            entries = [dict(entry) for entry in record["parameters"]]
            named = [(entry.pop("name"), entry) for entry in entries]
        except (KeyError, TypeError, ValueError) as error:
            form = '{"parameters": [{"name": ..., "type": ...}, ...]}'
            raise SpaceError(f"a space is written {form}, not {record!r}") from error
        return cls({name: parameter_from_dict(entry, name) for name, entry in named})

    def _blocks(self) -> Iterator[tuple[str, Parameter, slice]]:
        """Each parameter with its name and its columns."""
        end = 0
        for name, parameter in self.parameters.items():
            end += parameter.columns
            yield name, parameter, slice(end - parameter.columns, end)

    def _rows(self, rows: ArrayLike, width: int | None = None) -> Array:
        """`rows` as a 2-D float array of `width` columns."""
        array, columns = np.asarray(rows, dtype=float), width or self.width
        if array.ndim != 2 or array.shape[1] != columns:
            raise SpaceError(f"rows must have shape (q, {columns}), not {array.shape}")
        return array
