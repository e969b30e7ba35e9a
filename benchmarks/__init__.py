"""Programs that measure: each prints a table, as ratios in one run."""
