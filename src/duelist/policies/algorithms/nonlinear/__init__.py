"""Rules whose utilities are not linear in the features: one paper, one file."""
