"""Smaller models by leaving out what they can do without."""

from .prune import prune

__all__ = ["prune"]
