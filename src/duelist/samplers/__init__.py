"""Draws from exp(-potential), one file a kernel. Samplers know nothing of bandits, and policies only see draws."""
