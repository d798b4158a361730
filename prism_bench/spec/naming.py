"""Read the names of cases and tasks that no list of cases has."""

import re
from collections.abc import Mapping
from typing import Any

from prism_bench.errors import UsageError
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import Workload


def read_case(name: str, kernels: Mapping[str, KernelSpec]) -> Case | None:
    """Return the case that `kernel:variant[axis=value,...]` names, with any values of the kernel's axes and parameters.

    It has no label. The result is None for an unknown kernel or a wrong value, and unless every axis has a value.
    """
    kernel, bracket, axes = name.partition("[")
    kernel, _, variant = kernel.partition(":")
    if not bracket or not axes.endswith("]") or kernel not in kernels:
        return None
    spec = kernels[kernel].with_variant(variant) if variant else kernels[kernel]
    workload = _workload(axes[:-1], next(iter(spec.workloads.values())), spec.parameters)
    return Case(spec, workload, "", variant or None) if workload else None


def test_of(case: str) -> str:
    """Return the node id of the test that timed a case: its name, less the number of a later call in that test."""
    return re.sub(r" \d+$", "", case)


def _workload(text: str, known: Workload, parameters: Mapping[str, Any]) -> Workload | None:
    written = {axis: value for axis, _, value in (word.partition("=") for word in text.split(","))}
    usual: dict[str, Any] = {**parameters, **known}
    if not set(known) <= set(written) <= set(usual):
        return None
    try:
        return Workload(**{axis: _value(value, usual[axis]) for axis, value in written.items()})
    except ValueError:
        return None


def _value(text: str, usual: Any) -> Any:
    """Return the value that a name has as text, of the type of the usual one; ValueError where it is none.

    Where that is None, it may be a number too.
    """
    if isinstance(usual, bool):
        return ("False", "True").index(text) == 1
    if usual is None:
        return None if text == "None" else float(text)
    return type(usual)(text)


def chosen(case: Case, text: str) -> Case:
    """Return the case in the configuration that `block=128,groups=2` means.

    A UsageError is raised for a name or value that its spec does not have.
    """
    if case.spec.tune is None:
        raise UsageError(f"{case.name}: '{text}' configures a kernel whose spec has no tune=")
    return case.configured(case.spec.tune.parsed(text, case.name))
