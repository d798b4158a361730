"""Published figures of the design documents: their figures, budgets and rules, compared with what a record measured.

The documents' figures are quoted in `published.toml` and never passed off as measured. They bind nobody: none of them
is a finding of a run, and none closes the gate. `docs/generated/published.py` shows the comparison.
"""
