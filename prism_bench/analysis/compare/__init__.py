"""Comparison of records: estimates with their errors, the noise floor, and the verdicts slower, faster, same."""

START, MOST = 3, 15  # pairs of processes that a comparison begins and ends with
