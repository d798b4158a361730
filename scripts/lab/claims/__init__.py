"""The claims of this repository: made, replayed and compared."""
