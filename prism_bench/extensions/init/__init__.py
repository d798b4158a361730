"""`prism-bench init`: the files of a new project, from templates, and skeletons of the kernels that it has.

A part is a folder of `templates`, whose files have the paths that they get in the project; `catalogue` there is the
folder of kernels. A new file for a part is a new template, and a new part is a new folder.
"""

from prism_bench.extension import Extension

EXTENSION = Extension("init", commands={"init": "command"})
