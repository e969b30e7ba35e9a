"""Routing prompts to language models, as in LLM Routing with Dueling Feedback (arXiv:2510.00841)."""
