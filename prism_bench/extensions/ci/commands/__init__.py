"""Commands: nightly, history, comment, digest."""
