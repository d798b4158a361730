"""Claims: a measured speed-up as one file with everything that it takes to measure it again, and its replay."""

from prism_bench.extension import Extension

EXTENSION = Extension("claims", commands={"claim": "commands.claim"}, reads={"claim": "document:claim_title"})
