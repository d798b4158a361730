"""Workloads, golden data and other plain values as Python text."""

import json
import math

from prism_bench.kernel import Golden
from prism_bench.workload import Workload


def literal(value) -> str:
    """Text that evaluates to the value again."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}[repr(value)]
    if isinstance(value, tuple | list):
        opening, closing = "()" if isinstance(value, tuple) else "[]"
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return f"{opening}{', '.join(literal(one) for one in value)}{comma}{closing}"
    if isinstance(value, Workload):
        return f"Workload({', '.join(f'{axis}={literal(extent)}' for axis, extent in value.items())})"
    if isinstance(value, Golden):
        known = f"{mapping(value.inputs)}, {mapping(value.expected)}"
        return f"Golden({literal(value.workload)}, {known}, {literal(value.source)})"
    return repr(value)


def mapping(values) -> str:
    """A dictionary."""
    return f"{{{', '.join(f'{literal(key)}: {literal(value)}' for key, value in values.items())}}}"
