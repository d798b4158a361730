"""The inventory: what the catalogue defines, launches, verifies and times."""
