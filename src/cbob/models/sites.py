"""The truncated likelihoods and their moments: what "it broke" says about a latent value.

A reading that is known only by its sign s (+1: g > 0, broken; -1: g < 0, it held) has the likelihood

    t(g) = Phi(s g / scale)                                                              [paper, eq. 6, second case, mended]

a probit, and for scale = 0 the step function. Against a cavity N(m, v) its moments are closed (paper, eq. C.5), with
z = s m / sqrt(v + scale^2) and the hazard h, excess e and shrink of `cbob.numerics`:

    log Z = log Phi(z),   mean = m + s v h / sqrt(v + scale^2),   variance = v (1 - r h e),   r = v / (v + scale^2)

The site that matches them is exp(shift g - precision g^2 / 2):

    precision = r h e / (v (1 - r h e)),   shift = precision m + s h / (sqrt(v + scale^2) (1 - r h e))   [eq. C.6, mended]

Gaussian sites never come here: they are conditioned on exactly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbob.numerics import log_ndtr, truncation, truncation_at

Array = NDArray[np.float64]


# A sign 1e8 deviations against its cavity is a contradiction, and would overflow as anything else.
FARTHEST = -1e8


class Match(NamedTuple):
    """Log normaliser of the tilted distribution, and the Gaussian site that reproduces its moments."""

    log_normaliser: Array
    precision: Array
    shift: Array


def match_truncation(mean: Array, variance: Array, signs: Array, scale: float | Array) -> Match:
    """Moment matching against cavities N(mean, variance), one for each sign."""
    total = variance + scale**2
    spread = np.sqrt(total)
    z = signs * mean / spread
    hazard, excess, shrink = truncation(np.maximum(z, FARTHEST))
    share = variance / total
    # 1 - r h e, as a sum of positive terms: with a step (share = 1) it is the shrink, exact in the tail.
    left = (scale**2 / total) + share * shrink
    precision = share * (hazard * excess) / (variance * left)
    shift = precision * mean + signs * hazard / (spread * left)
    return Match(log_ndtr(z), precision, shift)


def match_one(mean: float, variance: float, sign: float, scale: float) -> tuple[float, float]:
    """Precision and shift of `match_truncation` for a single cavity, without the cost of arrays."""
    total = variance + scale * scale
    spread = math.sqrt(total)
    hazard, excess, shrink = truncation_at(max(sign * mean / spread, FARTHEST))
    share = variance / total
    left = scale * scale / total + share * shrink
    precision = share * hazard * excess / (variance * left)
    return precision, precision * mean + sign * hazard / (spread * left)
