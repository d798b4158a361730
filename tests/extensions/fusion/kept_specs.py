"""What the specs of the fused kernels say, as text; `python -m tests.extensions.fusion.kept_specs` keeps it."""

import json
from inspect import signature
from pathlib import Path

import numpy as np
import scipy.special

from prism_bench.catalogue import Catalogue, discover
from prism_bench.catalogue.catalogue import edge_cases, timed_cases
from prism_bench.spec.arguments import Array
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import KernelSpec, Launch

KEPT = Path(__file__).with_suffix(".json")
KERNELS = """fused_accuracy_pipeline fused_belief_update fused_free_energy fused_gemv_operations fused_kl_complexity
fused_matmul_bias_activation fused_transfer_entropy""".split()
HOPPER = Device(sm_count=132, max_shared_bytes=227 * 1024, compute_capability=90)
MOST = 1 << 26  # operations of a case whose reference is computed


def specs(catalogue: Catalogue) -> dict[str, dict[str, object]]:
    """By kernel or variant: what its spec says, and a line for each case that is timed or an edge of the program."""
    found = {}
    for kernel in KERNELS:
        whole = catalogue.kernels[kernel]
        for variant in (None, *whole.variants):
            spec = whole.with_variant(variant) if variant else whole
            name = f"{kernel}:{variant}" if variant else kernel
            cases = [*timed_cases(spec, variant), *edge_cases(spec, variant)]
            found[name] = {**_said(spec, catalogue), "cases": {case.name: _case(case) for case in cases}}
    return found


def _said(spec: KernelSpec, catalogue: Catalogue) -> dict[str, object]:
    return {
        "source": f"{spec.source.relative_to(catalogue.folder)} {spec.entry}",
        "arguments": [_argument(one) for one in spec.arguments],
        "parameters": repr(dict(spec.parameters)),
        "derived": list(spec.derived),
        "rules": [rule.text for rule in spec.rules],
        "reference": " ".join(signature(spec.reference).parameters),
        "peers": [f"{name}({', '.join(signature(spec.peer(name).call).parameters)})" for name in spec.peers],
        "budgets": [f"{one.label} {one.metric} {one.at_least}" for one in spec.budgets],
        "variants": {name: one.meaning for name, one in spec.variants.items()},
        "chains": repr(spec.chains),
        "names": [spec.family, *spec.aliases, *spec.replaces],
        "arithmetic": f"{spec.arithmetic}, traffic {spec.traffic_factor}",
    }


def _argument(one) -> str:
    fill = f" {one.fill.meaning}" if isinstance(one, Array) and one.reads else ""
    return f"{type(one).__name__} {one.name} {getattr(one, 'shape', '')} {one.dtype}{fill}"


def _case(case: Case) -> str:
    """Bytes, operations, launches on a Hopper device; of small cases also the size of outputs and of allowances."""
    plan = " ".join(map(_launch, case.plan.steps(HOPPER)))
    text = f"{case.label}, {case.sizes.bytes_moved} B, {case.sizes.flops} operations, {plan}"
    if case.sizes.flops > MOST:
        return text
    inputs = {name: one.on(np) for name, one in case.inputs().items()}
    outputs = case.correctness.expected(inputs, np, scipy.special)
    return text + "".join(f", {name} {_numbers(case, name, array, inputs)}" for name, array in outputs.items())


def _launch(step: Launch) -> str:
    passed = f"({' '.join(step.arguments)})" if step.arguments else ""
    return f"{step.entry}{passed} {step.grid}x{step.block}+{step.shared}"


def _numbers(case: Case, name: str, array, inputs) -> str:
    """The norm of an output and that of what it may be off by, to four digits: sums of other libraries agree so far."""
    allowance = case.correctness.allowance(name, inputs, np, scipy.special)
    size = 0.0 if allowance.magnitude is None else allowance.magnitude
    terms = f"{allowance.tolerance.name} {allowance.terms:.4g} {allowance.tolerance.normwise}"
    return f"{np.linalg.norm(array):.4g} ({terms} {np.linalg.norm(size):.4g})"


if __name__ == "__main__":
    KEPT.write_text(json.dumps(specs(discover()), indent=1) + "\n")
