"""Prism Bench: honest times for CUDA kernels.

The words that a kernel's spec is written in live here; importing them loads nothing heavy.
`benchmark`, `prepare` and `load` are fetched on first use, because they bring a device or pandas with them.
"""

from importlib import import_module

from prism_bench.budget import Budget
from prism_bench.inputs import constant, integers, normal, uniform
from prism_bench.kernel import (
    Chain,
    Edge,
    Golden,
    In,
    InOut,
    KernelSpec,
    Launch,
    Out,
    Requirement,
    Rule,
    Scalar,
    Scratch,
    Size,
    Variant,
    Zero,
)
from prism_bench.tolerance import absolute, elementwise, exact, exact_except, normalising, normwise, product, reduction
from prism_bench.tune import Tune
from prism_bench.workload import Workload

__version__ = "0.1.0"

_LAZY = {
    "benchmark": "prism_bench.workbench.callable",
    "prepare": "prism_bench.workbench.prepare",
    "load": "prism_bench.store",
}

__all__ = [
    "Budget",
    "Chain",
    "Edge",
    "Golden",
    "In",
    "InOut",
    "KernelSpec",
    "Launch",
    "Out",
    "Requirement",
    "Rule",
    "Scalar",
    "Scratch",
    "Size",
    "Tune",
    "Variant",
    "Workload",
    "Zero",
    "absolute",
    "benchmark",
    "constant",
    "elementwise",
    "exact",
    "exact_except",
    "integers",
    "load",
    "normal",
    "normalising",
    "normwise",
    "prepare",
    "product",
    "reduction",
    "uniform",
]


def __getattr__(name):
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'prism_bench' has no attribute '{name}'")
