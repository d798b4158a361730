"""Pipelines of the catalogue's kernels: definitions, forms to run them in, verification and times."""

from prism_bench.extension import Extension
from prism_bench.extensions.pipelines.definitions import INTEGRATION, KNOWN, MEASURED, pipelines
from prism_bench.extensions.pipelines.pipeline import Pipeline, Stage

__all__ = ["EXTENSION", "INTEGRATION", "KNOWN", "MEASURED", "Pipeline", "Stage", "pipelines"]

EXTENSION = Extension(
    "pipelines",
    commands={"pipeline": "command", "select": "policies.command"},
    offers={"pipeline programs": "worker:PipelinePrograms"},
)
