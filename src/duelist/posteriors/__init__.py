"""A posterior is a sum of terms: prior + preference likelihood (tempered by eta) + Feel-Good tilt (mu)."""
