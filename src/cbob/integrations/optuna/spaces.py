"""Optuna's distributions as parameters of cbob, and back.

A step becomes an Int that counts the steps, and a choice its place in the list, since Optuna allows choices that cbob does
not (NaN, or True beside 1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from cbob.errors import SpaceError, shown
from cbob.parameters import Categorical, Float, Int, Parameter, Value
from cbob.space import Space

__all__ = ["Codec", "Distributions", "internal", "levels"]

Distributions = Mapping[str, BaseDistribution]

COUNTABLE = 2**53  # beyond, neighbouring whole numbers are one float, and Optuna's storages keep floats


def internal(distribution: BaseDistribution, value: Any) -> float | None:
    """The value as Optuna stores it, or None if it lies outside the distribution (ranges may change between trials)."""
    try:
        stored = float(distribution.to_internal_repr(value))
    except ValueError:
        return None
    return stored if distribution._contains(stored) else None


def levels(distribution: BaseDistribution) -> list[float] | None:
    """All values as Optuna stores them, if they are choices or at most 16 whole numbers; otherwise None."""
    if isinstance(distribution, CategoricalDistribution):
        return [float(place) for place in range(len(distribution.choices))]
    if isinstance(distribution, IntDistribution) and (distribution.high - distribution.low) // distribution.step < 16:
        return [float(value) for value in range(distribution.low, distribution.high + 1, distribution.step)]
    return None


@dataclass(frozen=True)
class Dimension:
    """One distribution. `only` are the stored values to which it is restricted, in a branch that only these lead to."""

    distribution: BaseDistribution
    parameter: Parameter | None  # None where there is nothing to choose
    only: tuple[float, ...] | None = None

    @classmethod
    def of(cls, distribution: BaseDistribution, only: tuple[float, ...] | None = None) -> Dimension:
        if only is not None:
            return cls(distribution, Categorical([int(value) for value in only]) if len(only) > 1 else None, only)
        return cls(distribution, None if distribution.single() else _parameter(distribution))

    def inward(self, stored: float) -> Value:
        """The stored value as the parameter's."""
        spot, parameter = self.distribution, self.parameter
        if isinstance(spot, FloatDistribution) and isinstance(parameter, Int):
            assert spot.step is not None
            return min(max(round((stored - spot.low) / spot.step), parameter.low), parameter.high)
        if isinstance(parameter, Float):
            return min(max(stored, parameter.low), parameter.high)
        if isinstance(spot, IntDistribution) and self.only is None and not spot.log:
            return (int(stored) - spot.low) // spot.step
        return int(stored)

    def outward(self, value: Value) -> Any:
        """The parameter's value as an objective function gets it."""
        spot = self.distribution
        assert isinstance(value, int | float)
        if isinstance(spot, CategoricalDistribution):
            return spot.choices[int(value)]
        if isinstance(spot, FloatDistribution):
            if spot.step is None:
                return float(value)
            count = value if isinstance(self.parameter, Int) else round((value - spot.low) / spot.step)
            return min(spot.low + count * spot.step, spot.high)
        assert isinstance(spot, IntDistribution)
        if self.only is not None or spot.log:
            whole = round(value)
        elif isinstance(self.parameter, Float):
            whole = spot.low + round((value - spot.low) / spot.step) * spot.step
        else:
            whole = spot.low + int(value) * spot.step
        return min(max(whole, spot.low), spot.high)

    def constant(self) -> Any:
        """The one value there is, if `parameter` is None."""
        if self.only is not None:
            return self.distribution.to_external_repr(self.only[0])
        spot = self.distribution
        if isinstance(spot, CategoricalDistribution):
            return spot.choices[0]
        assert isinstance(spot, FloatDistribution | IntDistribution)
        return spot.low


def _parameter(spot: BaseDistribution) -> Parameter:
    if isinstance(spot, CategoricalDistribution):
        return Categorical(range(len(spot.choices)))
    if isinstance(spot, FloatDistribution):
        steps = None if spot.step is None else (spot.high - spot.low) / spot.step
        if steps is None or steps >= COUNTABLE:
            return Float(spot.low, spot.high, log=spot.log)
        return Int(0, round(steps))
    if isinstance(spot, IntDistribution):
        if spot.high - spot.low >= COUNTABLE or max(abs(spot.low), abs(spot.high)) >= COUNTABLE:
            return Float(spot.low, spot.high, log=spot.log)
        return Int(spot.low, spot.high, log=True) if spot.log else Int(0, (spot.high - spot.low) // spot.step)
    raise SpaceError(f"expected a float, an int or a categorical distribution, not {shown(spot)}")


class Codec:
    """Points of a set of distributions, as Optuna has them and as cbob does."""

    def __init__(self, distributions: Distributions, only: Mapping[str, Collection[float]] | None = None) -> None:
        restricted = {} if only is None else only
        self.dimensions = {
            name: Dimension.of(spot, tuple(restricted[name]) if name in restricted else None)
            for name, spot in sorted(distributions.items())  # in one order, however they were met
        }
        chosen = {name: one.parameter for name, one in self.dimensions.items() if one.parameter is not None}
        self.space = Space(chosen) if chosen else None  # None where nothing is left to choose

    def encode(self, stored: Mapping[str, float]) -> dict[str, Value] | None:
        """A point of the space from stored values; None if it lies outside of it."""
        point: dict[str, Value] = {}
        for name, one in self.dimensions.items():
            value = stored.get(name)
            if value is None or not one.distribution._contains(value) or (one.only is not None and value not in one.only):
                return None
            if one.parameter is not None:
                point[name] = one.inward(value)
        return point

    def decode(self, point: Mapping[str, Value]) -> dict[str, Any]:
        """What objective functions get."""
        return {
            name: one.constant() if one.parameter is None else one.outward(point[name]) for name, one in self.dimensions.items()
        }
