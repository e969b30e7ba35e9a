"""Compiled linear algebra: vectors, triangular factors, and tiles for large matrices."""
