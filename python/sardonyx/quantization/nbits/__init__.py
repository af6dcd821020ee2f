"""Weights of few bits: how blocks of numbers become integers with a scale and a zero point."""
