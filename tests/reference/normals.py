"""The normal distribution in mpmath, with digits to spare: the oracle of `cbob.numerics` and of the sites."""

from typing import Any

import mpmath

# At z = -1e8 the shrink cancels 32 digits; phi(z), near exp(-5e15), is nothing to mpmath's exponents.
DIGITS = 80


def cdf(z: Any) -> Any:
    """Phi(z). `mpmath.ncdf` loses its digits far out; erfc does not."""
    return mpmath.erfc(-mpmath.mpf(z) / mpmath.sqrt(2)) / 2


def log_cdf(z: Any) -> Any:
    """For z > 0 from the other tail: Phi(30) needs 200 digits to differ from 1."""
    return mpmath.log(cdf(z)) if z <= 0 else mpmath.log1p(-cdf(-z))


def pdf(z: Any) -> Any:
    return mpmath.exp(-(mpmath.mpf(z) ** 2) / 2) / mpmath.sqrt(2 * mpmath.pi)


def hazard(z: Any) -> Any:
    return pdf(z) / cdf(z)


def excess(z: Any) -> Any:
    return mpmath.mpf(z) + hazard(z)


def shrink(z: Any) -> Any:
    return 1 - hazard(z) * excess(z)


def improvement(z: Any) -> Any:
    return mpmath.mpf(z) * cdf(z) + pdf(z)


def log_miss(log_p: Any) -> Any:
    """log(1 - p), from whichever side keeps the digits."""
    log_p = mpmath.mpf(log_p)
    return mpmath.log1p(-mpmath.exp(log_p)) if log_p < -1 else mpmath.log(-mpmath.expm1(log_p))


def log_neg_log1m_exp(log_p: Any) -> tuple[Any, Any]:
    """log(-log(1 - p)) at p = exp(log_p), and its derivative p / ((1 - p) (-log(1 - p))) in log_p."""
    miss = log_miss(log_p)
    return mpmath.log(-miss), mpmath.exp(log_p - miss) / -miss
