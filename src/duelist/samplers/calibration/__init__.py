"""Checks of samplers against the law they should draw from: ranks, joint simulation, Stein discrepancy."""
