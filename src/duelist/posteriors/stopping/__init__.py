"""Are we done? Evidence for a goal, with an error probability that holds whenever one looks and stops."""
