"""A synthetic record whose cases are raced against peers of every class: unstable, poor, far off, or without a time."""

from prism_bench.record.measurement import Measurement
from tests.report.synthetic import case_result, record_of

TORCH = {"library": "torch", "version": "2.11.0"}
FACTS = {
    "cupy": {"library": "cupy", "version": "14.2.0", "form": "library", "kind": "library kernel", "calls": 1,
             "launches": 1},
    "torch": {**TORCH, "form": "eager", "kind": "eager chain", "calls": 5, "launches": 6},
    "torch_compiled": {**TORCH, "form": "compiled", "kind": "compiled", "launches": 2, "breaks": 1},
    "torch_tf32": {**TORCH, "form": "eager", "kind": "library kernel", "calls": 1, "launches": 1,
                   "precision": "products in TF32"},
    "quack": {"library": "quack", "version": "0.6.5", "form": "library", "kind": "library kernel", "calls": 1,
              "launches": 1, "work": "writes the sum as well"},
    "cdist": {**TORCH, "form": "library", "kind": "library kernel", "poor": "cdist(p=inf) has no fast kernel"},
}  # fmt: skip
ABSENT = "flash-attn-4 is not installed (pip install prism-gpu-bench[peers-strong]==0.2.0)"


def timed(name, seconds):
    """A cold time of the kernel (name None) or of a peer; one value for each process where it is a tuple."""
    values = seconds if isinstance(seconds, tuple) else (seconds * 0.998, seconds, seconds * 1.003)
    return Measurement("cold_time", f"peer:{name}" if name else "kernel", tuple((value,) * 5 for value in values))


def raced(kernel, label, own, times, **changes):
    """A case with these peers, by name; those of the kernel's spec have their facts."""
    peers = {name: FACTS[name] for name in times if name in FACTS}
    workload = {"n": {"S0": 1000, "S1": 1 << 26, "S2": 1 << 28}[label]}
    measured = (timed(None, own), *(timed(name, seconds) for name, seconds in times.items()))
    return case_result(kernel, label, workload=workload, measurements=measured, peers=peers, **changes)


def peered_record(**changes):
    """A run with peers of every class at every label."""
    cases = []
    for label, scale in (("S0", 4e-6), ("S1", 1e-3), ("S2", 4e-3)):
        cases += [
            raced("softmax", label, scale, {
                "cupy": 1.04 * scale, "torch": 4.6 * scale, "torch_compiled": (0.93 * scale, 4.5 * scale, 4.6 * scale),
            }),
            raced("layer_norm", label, scale, {"quack": 0.97 * scale, "torch": 3.9 * scale, "torch_compiled": scale}),
            raced("image_segmentation", label, scale, {"torch": 77 * scale}),
            raced("te_compute_distances", label, scale, {"cdist": 1170 * scale, "torch_compiled": 1.3 * scale}),
            raced("knn_distances_chebyshev", label, scale, {"cdist": 80 * scale}),
            raced("matmul", label, scale, {"cupy": 0.89 * scale, "torch_tf32": 0.4 * scale}),
        ]  # fmt: skip
    absent = Measurement("cold_time", "peer:flash", (), reason=ABSENT)
    cases.append(case_result("attention", "S1", measurements=(timed(None, 2e-3), absent)))
    return record_of(*cases, **changes)
