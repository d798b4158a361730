"""Comparison of records: estimates with their errors, the noise floor, and the verdicts slower, faster, same."""
