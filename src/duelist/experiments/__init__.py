"""Experiments: policies meet environments, and results are tables."""
