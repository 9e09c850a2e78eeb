"""Acquisitions: how much a point is worth trying, in log space and with gradients."""
