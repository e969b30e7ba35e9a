"""Append and read events, and snapshots of what they add up to. Nothing acknowledged is lost."""
