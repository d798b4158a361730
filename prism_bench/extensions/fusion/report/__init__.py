"""The fusion ledger as terminal tables, JSON, pictures and a site page."""
