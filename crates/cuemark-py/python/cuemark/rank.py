"""Graded relevance: what several people's ratings come to, and how far they agree."""

from ._native import agreement, consensus

__all__ = ["agreement", "consensus"]
