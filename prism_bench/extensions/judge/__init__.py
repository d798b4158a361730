"""The judge: a stranger's kernel, taken as device code and a card, compiled and run in a jail, with a verdict."""

from prism_bench.extension import Extension

EXTENSION = Extension("judge", commands={"judge": "command"}, offers={"judge": "judging:judge"})
