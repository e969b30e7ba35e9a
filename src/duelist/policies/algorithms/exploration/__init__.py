"""Rules that play to know, not to earn: one paper, one file."""
