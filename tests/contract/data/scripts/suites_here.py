"""Print the asv benchmarks of the folder `suites` that is below this folder, or below the folder named."""

import inspect
import json
import sys
from importlib import import_module
from pathlib import Path

root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
sys.path.insert(0, str(root))
for path in sorted((root / "suites").glob("*.py")):
    module = import_module("suites" if path.stem == "__init__" else f"suites.{path.stem}")
    for name, suite in inspect.getmembers(module, inspect.isclass):
        if suite.__module__ == module.__name__:
            for method in sorted(vars(suite)):
                if method.startswith(("time_", "track_", "mem_", "peakmem_")):
                    function = getattr(suite, method)
                    print(f"{path.stem}.{name}.{method}", getattr(function, "pretty_name", ""))
                    parameters = suite.params if suite.params else [[]]
                    print("   ", suite.param_names, json.dumps(parameters)[:200], len(parameters[0]), suite.unit)
if len(sys.argv) > 2:
    suites = import_module("suites.times")
    cold = suites.Cold()
    cache = cold.setup_cache()
    for case in cold.params[0]:
        value = cold.track_cold_time(cache, case)
        print(case, sorted(value), len(value["samples"]), value["number"])
