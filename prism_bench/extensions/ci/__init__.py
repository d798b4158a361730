"""Continuous integration: nightly runs, histories, comments, digests and alerts."""
