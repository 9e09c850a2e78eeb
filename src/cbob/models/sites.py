"""The truncated likelihoods and their moments: what "it broke" says about a latent value.

A reading that is known only by its sign s (+1: g > 0, broken; -1: g < 0, it held) has the likelihood

    t(g) = Phi(s g / scale)                                                              [paper, eq. 6, second case, mended]

a probit, and for scale = 0 the step function. Against a cavity N(m, v) its moments are closed (paper, eq. C.5), with
z = s m / w, w = sqrt(v + scale^2) and the hazard h, excess e and shrink of `cbob.numerics`:

    log Z = log Phi(z),   mean = m + s v h / w,   variance = v (1 - r h e),   r = v / w^2

The site that matches them is exp(shift g - precision g^2 / 2):

    precision = h e / (w^2 (1 - r h e)),   shift = s h (1 + z e) / (w (1 - r h e))       [eq. C.6, mended]

As written, 1 - r h e and 1 + z e lose their digits for z << 0. They are computed as the sums of positive terms
(scale^2 + v shrink) / w^2 and shrink + e^2, which they equal because h = e - z.

Gaussian sites never come here: they are conditioned on exactly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbob.numerics import log_ndtr, truncation, truncation_at

Array = NDArray[np.float64]


# A sign this many deviations against its cavity is a contradiction, and one as many in favour is certain: as
# anything else they would overflow.
FARTHEST = 1e8


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
    hazard, excess, shrink = truncation(np.clip(z, -FARTHEST, FARTHEST))
    left = (scale**2 + variance * shrink) / total
    precision = hazard * excess / (total * left)
    shift = signs * hazard * (shrink + excess**2) / (spread * left)
    return Match(log_ndtr(z), precision, shift)


def match_one(mean: float, variance: float, sign: float, scale: float) -> tuple[float, float]:
    """Precision and shift of `match_truncation` for a single cavity, without the cost of arrays."""
    total = variance + scale * scale
    spread = math.sqrt(total)
    hazard, excess, shrink = truncation_at(min(max(sign * mean / spread, -FARTHEST), FARTHEST))
    left = (scale * scale + variance * shrink) / total
    precision = hazard * excess / (total * left)
    return precision, sign * hazard * (shrink + excess * excess) / (spread * left)
