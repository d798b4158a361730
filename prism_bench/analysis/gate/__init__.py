"""Gate: budgets, baselines and the checks that decide whether the newest record may pass."""
