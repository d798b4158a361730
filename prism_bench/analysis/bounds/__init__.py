"""Bounds of a kernel: roofline, bottleneck, counters and the ledger of its launches."""
