"""Splits that expose bias: made from a dataset, written with a manifest, audited."""

from ._native import audit, cd, centre, standard

__all__ = ["audit", "cd", "centre", "standard"]
