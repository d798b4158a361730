"""Measured policies: which form, window or batch is fastest on this machine."""
