"""Compiled rules: how pairs are chosen, one kind of rule per file."""
