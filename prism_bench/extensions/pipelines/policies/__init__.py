"""Measured policies: which form, window or batch is fastest on this machine."""

from prism_bench.extension import Extension

EXTENSION = Extension("policies", commands=("command",))
