"""Prism Bench: honest times for CUDA kernels.

The words that a kernel's spec is written in, and `benchmark`, `prepare`, `load` and public functions of extensions,
such as `judge`. Each is fetched on first use: `benchmark` brings a device with it and `load` pandas, and a command must
guard itself against signals before it loads anything.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prism_bench.api.callables import benchmark, compare
    from prism_bench.api.kernels import prepare
    from prism_bench.extensions.judge.judging import judge as judge  # the module is absent where the extension is
    from prism_bench.record.store import load
    from prism_bench.spec.inputs import constant, integers, normal, uniform
    from prism_bench.spec.kernel import (
        Chain,
        Constant,
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
        Struct,
        TensorMap,
        Variant,
        Zero,
    )
    from prism_bench.spec.launch import CardParameter, LaunchCard
    from prism_bench.spec.metric import Budget
    from prism_bench.spec.peer import KernelCall
    from prism_bench.spec.tolerance import (
        absolute,
        elementwise,
        exact,
        exact_except,
        normalising,
        normwise,
        product,
        reduction,
        selection,
    )
    from prism_bench.spec.workload import Tune, Workload

__version__ = "0.2.0"

_HOMES = {
    "spec.inputs": ("constant", "integers", "normal", "uniform"),
    "spec.kernel": (
        "Chain", "Constant", "Edge", "Golden", "In", "InOut", "KernelSpec", "Launch", "Out", "Requirement", "Rule",
        "Scalar", "Scratch", "Size", "Struct", "TensorMap", "Variant", "Zero",
    ),
    "spec.launch": ("CardParameter", "LaunchCard"),
    "spec.metric": ("Budget",),
    "spec.peer": ("KernelCall",),
    "spec.tolerance": (
        "absolute", "elementwise", "exact", "exact_except", "normalising", "normwise", "product", "reduction",
        "selection",
    ),
    "spec.workload": ("Tune", "Workload"),
    "api.callables": ("benchmark", "compare"),
    "api.kernels": ("prepare",),
    "record.store": ("load",),
}  # fmt: skip
_HOME = {name: f"prism_bench.{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "Budget",
    "CardParameter",
    "Chain",
    "Constant",
    "Edge",
    "Golden",
    "In",
    "InOut",
    "KernelCall",
    "KernelSpec",
    "Launch",
    "LaunchCard",
    "Out",
    "Requirement",
    "Rule",
    "Scalar",
    "Scratch",
    "Size",
    "Struct",
    "TensorMap",
    "Tune",
    "Variant",
    "Workload",
    "Zero",
    "absolute",
    "benchmark",
    "compare",
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
    "selection",
    "uniform",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        globals()[name] = getattr(import_module(_HOME[name]), name)
        return globals()[name]
    if not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        return import_module(f"{__name__}.{name}")
    offered = None if name.startswith("_") else import_module("prism_bench.extension").offered(name)
    if offered is not None:
        globals()[name] = offered
        return offered
    raise AttributeError(f"module 'prism_bench' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
