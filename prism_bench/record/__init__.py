"""Run records: their parts, their check, the store, and formats of other tools."""
