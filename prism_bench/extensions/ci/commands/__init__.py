"""Commands: nightly, comment."""
