"""Procedures that find out how good this package's own answers are, where the truth is known."""
