"""Specs in, result tables out: resumable and parallel."""
