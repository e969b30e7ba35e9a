"""Rewards that are not linear in the features. Ready-made ones run on NumPy alone; learning them needs the extra `jax`."""
