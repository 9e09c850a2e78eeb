"""Surrogates: what the engine believes about the objective and about each limit."""

from cbob.models.ep import EPResult, expectation_propagation
from cbob.models.gp import Posterior
from cbob.models.hlgp import GPC, GPR, HLGP, Settings

__all__ = ["GPC", "GPR", "HLGP", "EPResult", "Posterior", "Settings", "expectation_propagation"]
