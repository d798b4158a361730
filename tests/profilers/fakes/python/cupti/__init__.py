"""Stands in for the package cupti-python in a process that has no GPU."""
