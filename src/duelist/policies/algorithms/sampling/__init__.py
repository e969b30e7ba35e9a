"""Rules that draw from a posterior or look ahead with it, on linear utilities: one paper, one file."""
