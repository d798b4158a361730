"""`prism-bench init`: the files of a new project, from templates, and skeletons of its existing kernels.

A part is a folder of `templates`, whose files have their paths in the project; `catalogue` in these paths is the
folder of kernels. To add a file to a part, add a template; to add a part, add a folder.
"""

from prism_bench.extension import Extension

EXTENSION = Extension("init", commands={"init": "command"})
