"""The site: all pages about the records of a machine, static, opened from disk, never half new."""

from prism_bench.report.site.build import Built, build_site

__all__ = ["Built", "build_site"]
