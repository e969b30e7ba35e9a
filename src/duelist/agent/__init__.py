"""One live lane: a policy and what it has learnt, asked and told one duel at a time."""
