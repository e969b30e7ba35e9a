"""Requests, pages and what stands before them."""
