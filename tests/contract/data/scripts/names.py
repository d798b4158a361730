"""Print the documented names of the package, with what they take."""

import enum
import inspect
import re

import prism_bench


def members(kind):
    for name, value in inspect.getmembers(kind):
        if name.startswith("_"):
            continue
        if isinstance(value, property) or not callable(value):
            yield name
        else:
            yield name + signature(value)


def signature(value):
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "(?)"
    text = ", ".join(str(parameter.replace(annotation=inspect.Parameter.empty)) for parameter in parameters)
    return f"({re.sub(' at 0x[0-9a-f]+', '', text)})"


print("__version__", prism_bench.__version__)
print("dir", *(name for name in dir(prism_bench) if name in prism_bench.__all__))
for name in prism_bench.__all__:
    value = getattr(prism_bench, name)
    print(name + signature(value) if callable(value) else f"{name}: {type(value).__name__}")
    if inspect.isclass(value) and not issubclass(value, enum.Enum):
        print("   ", ", ".join(members(value)))
print("judge" + signature(prism_bench.judge))
