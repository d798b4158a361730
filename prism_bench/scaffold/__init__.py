"""Scaffold of a new project: the files that `prism-bench init` writes, from templates."""
