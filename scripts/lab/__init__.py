"""What tests the instrument, or publishes its own results: simulations, fuzzing, soak, own claims."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]  # tables are written into its reports/
