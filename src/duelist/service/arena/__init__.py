"""One arena: its items, commands, events and decisions."""
