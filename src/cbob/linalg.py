"""Dense linear algebra for the models: Cholesky factors, solves and the one-thread guard. It knows no statistics.

LAPACK is called through SciPy's thin wrappers: at N = 200 the convenience layer costs as much as the factorisation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from threadpoolctl import ThreadpoolController

__all__ = ["cholesky", "inverse_from_cholesky", "one_thread", "solve_lower", "times_lower", "triangular_inverse"]

Array = NDArray[np.float64]


class NotPositiveDefiniteError(ArithmeticError):
    """Not even the largest jitter made the matrix positive definite."""


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()  # scanning the loaded libraries takes milliseconds: once per process


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread: matrices of a few hundred rows run several times slower on two (measured)."""
    with _threads().limit(limits=1, user_api="blas"):
        yield


# Relative to the mean diagonal. The first try adds nothing; four decades further than any kernel here has needed.
JITTERS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)


def cholesky(matrix: Array) -> Array:
    """Lower factor L with L L' = matrix + jitter I, the jitter being the least of JITTERS that works."""
    if not matrix.size:
        return np.empty_like(matrix, order="F")
    scale = float(np.mean(np.diagonal(matrix)))
    for jitter in JITTERS:
        shifted = np.array(matrix, order="F")
        if jitter:
            shifted[np.diag_indices_from(shifted)] += jitter * scale
        factor, info = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
        if info == 0:
            return factor  # type: ignore[no-any-return]
    raise NotPositiveDefiniteError(
        f"a {matrix.shape[0]} x {matrix.shape[0]} matrix stayed indefinite up to jitter {JITTERS[-1]:g}"
    )


def solve_lower(lower: Array, right: Array) -> Array:
    """L^-1 right."""
    if not lower.size:
        return right.copy()
    return blas.dtrsm(1.0, lower, right, lower=1)  # type: ignore[no-any-return]


def times_lower(lower: Array, right: Array) -> Array:
    """lower @ right, at half the cost of a full product; `right` in Fortran order is overwritten."""
    if not lower.size:
        return np.zeros_like(right)
    return blas.dtrmm(1.0, lower, right, lower=1, overwrite_b=1)  # type: ignore[no-any-return]


def triangular_inverse(lower: Array) -> Array:
    """L^-1: with it each later solve is one matrix product, three times as fast as back-substitution for few columns."""
    if not lower.size:
        return np.empty_like(lower, order="F")
    inverse, _ = lapack.dtrtri(lower, lower=1)
    return inverse  # type: ignore[no-any-return]


def inverse_from_cholesky(lower: Array) -> Array:
    """(L L')^-1, full and symmetric."""
    if not lower.size:
        return np.empty_like(lower, order="F")
    half, _ = lapack.dpotri(lower, lower=1)  # `cholesky` left zeros above the diagonal, and so does this
    full = half + half.T
    full[np.diag_indices_from(full)] *= 0.5
    return full  # type: ignore[no-any-return]
