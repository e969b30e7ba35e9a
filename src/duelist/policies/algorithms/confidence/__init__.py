"""Rules that weigh estimates by confidence bounds, on linear utilities: one paper, one file."""
