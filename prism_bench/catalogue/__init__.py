"""Catalogue: finds every pair of source and spec in a folder, loads the specs and lists their cases.

The folder is the registry. `find` looks for specs, `load` reads and checks one, `implementations` adds its forms in
other languages, `listing` names the cases.
"""

from prism_bench.catalogue.catalogue import Catalogue, Problem
from prism_bench.catalogue.loading import built_in, discover, load_module, of_project
from prism_bench.io.files import default_folder

__all__ = ["Catalogue", "Problem", "built_in", "default_folder", "discover", "load_module", "of_project"]
