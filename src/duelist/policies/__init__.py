"""Policies: one paper, one file. A policy is hyper-parameters; what it has learnt is a separate value."""
