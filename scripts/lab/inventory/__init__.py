"""The inventory: what the catalogue defines, launches, verifies and times."""

from prism_bench.extension import Extension

EXTENSION = Extension("inventory", commands=("command",))
