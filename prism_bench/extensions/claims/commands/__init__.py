"""Commands of claims."""
