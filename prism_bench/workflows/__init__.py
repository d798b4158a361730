"""Procedures that find out how good this package's own answers are, where the truth is known."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]  # of a checkout: tables are written into its reports/
