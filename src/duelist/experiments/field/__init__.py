"""The field: every rule of the package on every kind of problem that its assumptions allow."""
