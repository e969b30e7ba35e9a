"""Rules for K arms that read no features: one paper, one file."""
