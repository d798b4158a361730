"""Pipelines of the catalogue's kernels: what they are, how they run, whether they are right, what they take."""

from prism_bench.pipelines.known import INTEGRATION, KNOWN, MEASURED, pipelines
from prism_bench.pipelines.pipeline import Pipeline, Stage

__all__ = ["INTEGRATION", "KNOWN", "MEASURED", "Pipeline", "Stage", "pipelines"]
