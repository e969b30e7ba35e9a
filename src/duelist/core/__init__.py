"""Action sets, duels, history, random streams, array checks and errors: what every other room stands on."""
