"""Catalogue: finds every pair of source and spec in a folder, loads the specs and lists their cases.

The folder is the registry.

catalogue       the kernels of a folder with their cases
loading         find, import and check specs and their forms in other languages
importer        the Python packages into which specs are imported
project_source  the source of a spec, and its project's compiler options
edge_inputs     input regimes of edges
"""

from prism_bench.catalogue.catalogue import Catalogue, Problem
from prism_bench.catalogue.loading import built_in, discover, load_module, of_project
from prism_bench.io.files import default_folder

__all__ = ["Catalogue", "Problem", "built_in", "default_folder", "discover", "load_module", "of_project"]
