"""Environments: who is compared, who wins, what the truth is. Only the experiment runner may ask for regret."""
