"""Scaffold of a new project: the files that `prism-bench init` writes, from templates.

A part is a folder of `templates`, whose files have the paths that they get in the project; `catalogue` there is the
folder of kernels. A new file for a part is a new template, and a new part is a new folder.
"""

from prism_bench.extensions.init.new_project import NewProject, new_project
from prism_bench.extensions.init.parts import PARTS

__all__ = ["PARTS", "NewProject", "new_project"]
