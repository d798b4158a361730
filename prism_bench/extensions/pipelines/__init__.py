"""Pipelines of the catalogue's kernels: definitions, forms to run them in, verification and times."""

from prism_bench.extension import Extension

EXTENSION = Extension(
    "pipelines",
    commands={"pipeline": "command"},
    offers={"pipeline programs": "worker:PipelinePrograms", "policy mode": "policies.mode:policy"},
)
