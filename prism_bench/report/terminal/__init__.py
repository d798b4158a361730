"""Run records and findings as Rich tables for the terminal."""
