"""Numbers in, numbers out: the paper's constants, bounds and schedules, each with its conditions."""
