"""A catalogue kernel as a Python callable."""

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import unknown


def prepare(
    kernel: str, label: str = "S0", *, backend: str = "cuda", variant: str | None = None, catalogue=None, seed=0
):
    """The kernel at its workload `label`, prepared: call it to launch it, `.arrays(names)` gives its buffers.

    Raises UsageError for an unknown kernel, variant or label, BackendUnavailable where the backend cannot be opened.
    """
    found = discover(catalogue)
    spec = found.kernel(kernel)
    if variant:
        spec.with_variant(variant)
    word = f"{spec.name}:{variant}" if variant else spec.name
    cases = [case for case in found.cases([word], [label]) if case.variant == variant]
    if not cases:
        raise unknown(f"label of {word}", label, spec.workloads)
    return open_backend(backend).prepare(cases[0], cases[0].inputs(seed))
