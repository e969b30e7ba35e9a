"""Rules that show more than two candidates at a time: one paper, one file."""
