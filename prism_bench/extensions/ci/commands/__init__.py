"""Commands: nightly, history, comment."""
