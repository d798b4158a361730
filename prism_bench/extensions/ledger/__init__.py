"""The launch ledger: launches, gaps and copies of a chain of cases, a script or a recorded trace."""

from prism_bench.extension import Extension

EXTENSION = Extension("ledger", commands=("command",))
