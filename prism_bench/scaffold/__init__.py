"""Scaffold of a new project: kernels found in existing sources, and the files that `prism-bench init` writes."""
