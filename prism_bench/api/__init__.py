"""The Python API: `benchmark`, `prepare`, online tuning, products."""
